// The C library, by one name on every platform. What a name of its own would hide is called as
// `DendroPlatform.open`.

#if canImport(Glibc)
  @_exported public import Glibc
#elseif canImport(Musl)
  @_exported public import Musl
#elseif canImport(Darwin)
  @_exported public import Darwin
#endif

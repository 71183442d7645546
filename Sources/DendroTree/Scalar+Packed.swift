// A scalar as the bytes that pages, logs and checkpoints have of it.

extension Scalar {
  /// Calls `body` with the packed form, which is valid only during the call. Not generic, since a
  /// generic function is not specialized for another module.
  ///
  /// - Precondition: a double is finite.
  package func withPacked(_ body: (UnsafeRawBufferPointer) -> Void) {
    withUnsafeTemporaryAllocation(byteCount: PackedScalar.byteCount(self), alignment: 1) { packed in
      _ = PackedScalar.write(self, to: packed.baseAddress.unsafelyUnwrapped)
      body(UnsafeRawBufferPointer(packed))
    }
  }
}

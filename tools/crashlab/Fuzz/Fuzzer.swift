#if DENDRO_FUZZ
  import Foundation
  import DendroFuzzTargets

  @_silgen_name("LLVMFuzzerRunDriver")
  private func runDriver(
    _ argc: UnsafeMutablePointer<Int32>,
    _ argv: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>,
    _ body: @convention(c) (UnsafePointer<UInt8>?, Int) -> Int32
  ) -> Int32

  /// What the address sanitizer asks for when the process begins: the stacks of all allocations, which it
  /// remembers, take a third of the time.
  @_cdecl("__asan_default_options")
  func sanitizerOptions() -> UnsafePointer<CChar> {
    let options: StaticString = "quarantine_size_mb=32:malloc_context_size=3"
    return UnsafeRawPointer(options.utf8Start).assumingMemoryBound(to: CChar.self)
  }

  /// libFuzzer's driver, in a process of its own, with the words that libFuzzer takes.
  ///
  /// The target stands in the environment and not among the words: if inputs are merged the driver
  /// starts itself again with words of its own.
  enum Fuzzer {
    static let isBuilt = true

    private static let target = ProcessInfo.processInfo.environment[FuzzRun.targetVariable]
      .flatMap(FuzzTarget.named)

    static func run() -> Int32 {
      guard target != nil else { return 64 }
      // The parent process reads a single stream.
      dup2(1, 2)
      var argc = CommandLine.argc
      var argv = CommandLine.unsafeArgv
      return runDriver(&argc, &argv) { bytes, count in
        let input = UnsafeRawBufferPointer(start: bytes, count: count)
        if let problem = Fuzzer.target?.problem(with: input) {
          FileHandle.standardError.write(Data("\(FuzzRun.mark)\(problem)\n".utf8))
          abort()
        }
        return 0
      }
    }
  }
#else
  /// No fuzzer here: it takes the flags of the build that tools/fuzz makes.
  enum Fuzzer {
    static let isBuilt = false

    static func run() -> Int32 { 69 }
  }
#endif

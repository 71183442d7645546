#if os(Linux)
  import DendroPlatform

  /// `inotify` on one directory. The kernel queues an event before the call that changes the name returns.
  final class InotifyWatch: DirectoryWatch {
    private let descriptor: Int32
    /// Whether the kernel has dropped events, or watches the directory no longer.
    private var isLost = false

    /// Fails if the file system is not a local one, whose changes all pass through this kernel, or
    /// if the user has no watch left.
    init?(_ directory: String) {
      guard Self.isLocal(directory) else { return nil }
      descriptor = inotify_init1(Int32(O_NONBLOCK | O_CLOEXEC))
      guard descriptor >= 0 else { return nil }
      let events =
        IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE | IN_MOVE_SELF | IN_DELETE_SELF
      guard inotify_add_watch(descriptor, directory, UInt32(events) | Self.onlyDirectory) >= 0
      else {
        close(descriptor)
        return nil
      }
    }

    deinit { close(descriptor) }

    func hasChanged() -> Bool {
      if isLost { return true }
      return withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 8) { buffer in
        let count = read(descriptor, buffer.baseAddress, buffer.count)
        if count < 0 { return errno != EAGAIN }
        var offset = 0
        while offset + MemoryLayout<inotify_event>.size <= count {
          let event = buffer.loadUnaligned(fromByteOffset: offset, as: inotify_event.self)
          if event.mask & UInt32(IN_IGNORED | IN_Q_OVERFLOW | IN_UNMOUNT) != 0 { isLost = true }
          offset += MemoryLayout<inotify_event>.size + Int(event.len)
        }
        return true
      }
    }

    private static let onlyDirectory: UInt32 = 0x0100_0000

    /// Network file systems report only what this machine changes, and stacked ones may forward nothing.
    private static func isLocal(_ directory: String) -> Bool {
      guard let statfs else { return false }
      // The type is the first field; the whole takes 120 bytes where a word has eight.
      return withUnsafeTemporaryAllocation(byteCount: 256, alignment: 8) { status in
        guard let base = status.baseAddress, statfs(directory, base) == 0 else { return false }
        return localFileSystems.contains(UInt32(truncatingIfNeeded: base.load(as: UInt.self)))
      }
    }

    /// The magic numbers of statfs(2): ext2 to ext4, XFS, Btrfs, tmpfs, F2FS, ZFS, bcachefs.
    private static let localFileSystems: Set<UInt32> = [
      0xEF53, 0x5846_5342, 0x9123_683E, 0x0102_1994, 0xF2F5_2010, 0x2FC1_2FC1, 0xCA45_1A4E,
    ]
  }

  /// Declared in a header that Swift's modules of the C library leave out.
  private let statfs: (@convention(c) (UnsafePointer<CChar>, UnsafeMutableRawPointer) -> Int32)? = {
    guard let symbol = dlsym(nil, "statfs") else { return nil }
    return unsafeBitCast(
      symbol, to: (@convention(c) (UnsafePointer<CChar>, UnsafeMutableRawPointer) -> Int32).self)
  }()
#endif

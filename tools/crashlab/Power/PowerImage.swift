import Foundation

/// A file system in a file, mounted through a loop device, whose power can be cut: what the device was
/// given until then is in the file, what the system still held in memory is not.
final class PowerImage {
  enum Kind: String, CaseIterable {
    case ext4, xfs, btrfs

    /// Smaller ones are refused by their tools.
    var byteCount: UInt64 { self == .ext4 ? 64 << 20 : 320 << 20 }

    /// Mount options; they differ in which writes without a synchronize a cut may lose.
    var mountOptions: [String] {
      switch self {
      case .ext4:
        ["defaults", "data=writeback,commit=1000", "data=journal", "data=ordered,commit=1000"]
      case .xfs: ["defaults", "logbufs=2"]
      case .btrfs: ["defaults", "flushoncommit", "compress=zstd"]
      }
    }

    /// Why it cannot be had here; nil if it can.
    var problem: String? {
      SystemTool.path(of: "mkfs.\(rawValue)") == nil ? "mkfs.\(rawValue) is missing" : nil
    }
  }

  let kind: Kind
  let mountPoint: String
  private let folder: String
  private var number = 0
  private var options = "defaults"
  private var isMounted = false

  /// - `folder`: on a disk in memory, for the images.
  init(_ kind: Kind, in folder: String) throws {
    self.kind = kind
    self.folder = folder
    mountPoint = "\(folder)/\(kind.rawValue)"
    try FileManager.default.createDirectory(
      atPath: mountPoint, withIntermediateDirectories: true)
  }

  private var file: String { "\(folder)/\(kind.rawValue)-\(number).img" }

  /// Makes a new, empty one and mounts it.
  func format(_ options: String) throws {
    unmount()
    try? FileManager.default.removeItem(atPath: file)
    number += 1
    self.options = options
    guard FileManager.default.createFile(atPath: file, contents: nil),
      truncate(file, off_t(kind.byteCount)) == 0
    else { throw SystemTool.Failure(description: "no room for \(file)") }
    switch kind {
    case .ext4: try SystemTool.run("mkfs.ext4", "-q", "-F", file)
    case .xfs: try SystemTool.run("mkfs.xfs", "-q", "-f", file)
    case .btrfs: try SystemTool.run("mkfs.btrfs", "-q", "-f", file)
    }
    try mount()
  }

  private func mount() throws {
    try SystemTool.run("mount", "-t", kind.rawValue, "-o", "loop,\(options)", file, mountPoint)
    isMounted = true
  }

  func unmount() {
    guard isMounted else { return }
    for _ in 0..<100 {
      if (try? SystemTool.run("umount", mountPoint)) != nil {
        isMounted = false
        return
      }
      usleep(10_000)  // The killed process still has a file open.
    }
    try? SystemTool.run("umount", "--lazy", mountPoint)
    isMounted = false
  }

  /// Cuts the power by copying the present content of the device. Only the kernel may write meanwhile.
  ///
  /// - Returns: what to mount then; the present one stays mounted until it is.
  func cut() throws -> String {
    let copy = "\(folder)/\(kind.rawValue)-\(number + 1).img"
    // The kernel may be writing by itself: a copy during which it did is of no one moment.
    for _ in 0..<200 {
      let before = try deviceCounts()
      try SystemTool.run("cp", "--sparse=always", file, copy)
      let after = try deviceCounts()
      if before == after, before.last == 0 { return copy }
    }
    throw SystemTool.Failure(description: "the loop device of \(file) never rests")
  }

  /// Puts the copy in the place of what was mounted, as the next start of the machine finds it.
  func restart(from copy: String) throws {
    unmount()
    try? FileManager.default.removeItem(atPath: file)
    number += 1
    precondition(copy == file, "the copy is the next image")
    try mount()
  }

  /// Writes, sectors written, discards and flushes that the loop device has done, and how many
  /// requests are under way (kernel: Documentation/block/stat.rst).
  private func deviceCounts() throws -> [UInt64] {
    let mounts = try String(contentsOfFile: "/proc/self/mounts", encoding: .utf8)
    guard
      let line = mounts.split(separator: "\n").last(where: {
        $0.split(separator: " ").dropFirst().first.map(String.init) == mountPoint
      }), let device = line.split(separator: " ").first?.split(separator: "/").last
    else { throw SystemTool.Failure(description: "\(mountPoint) is not mounted") }
    let text = try String(contentsOfFile: "/sys/block/\(device)/stat", encoding: .utf8)
    let fields = text.split(whereSeparator: \.isWhitespace).map { UInt64($0) ?? 0 }
    guard fields.count >= 15 else { throw SystemTool.Failure(description: "\(device): \(text)") }
    return [fields[4], fields[6], fields[11], fields.count > 15 ? fields[15] : 0, fields[8]]
  }
}

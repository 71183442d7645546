import DendroEngine
import DendroStorage

extension HistoryPoint {
  /// The value of an option that takes an LSN or a time; nil if it was not given.
  init?(_ arguments: Arguments, _ option: String) throws {
    guard let text = arguments.value(option) else { return nil }
    if let lsn = UInt64(text) {
      self = .lsn(LogSequenceNumber(lsn))
    } else if let time = Format.parseTime(text, now: Platform.now()) {
      self = .time(time)
    } else {
      throw Failure.usage(
        "--\(option) takes an LSN or a time such as 2026-11-21T04:00, not \(Failure.quoted(text))",
        hint: "times are UTC; also '2026-11-21 04:00+02:00', now and '10 minutes ago'")
    }
  }
}

extension HistoryRetention {
  /// The value of `--history`; all if it was not given.
  init(_ arguments: Arguments) throws {
    let text = arguments.value("history") ?? "all"
    let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    let number = parts.count == 2 ? UInt64(parts[1]) : nil
    switch (parts[0], number) {
    case ("all", nil) where parts.count == 1: self = .all
    case ("none", nil) where parts.count == 1: self = .none
    case ("writes", let count?): self = .writes(count)
    case ("bytes", let count?): self = .bytes(count)
    case ("seconds", let count?) where count <= 1 << 50: self = .milliseconds(Int64(count) * 1000)
    default:
      throw Failure.usage(
        "--history takes all, none, writes:N, bytes:N or seconds:N, not \(Failure.quoted(text))")
    }
  }
}

/// What an acknowledgement promises.
///
/// | value | a write is acknowledged once | a process crash takes | a power loss takes |
/// | --- | --- | --- | --- |
/// | `everyCommit` | the disk has synchronized it (`fdatasync`) | nothing acknowledged | nothing acknowledged |
/// | `interval(d)` | the operating system has it | nothing acknowledged | at most the writes of the last `d` |
/// | `none` | the operating system has it | nothing acknowledged | whatever the system had not yet written |
package enum Durability: Hashable, Sendable {
  case everyCommit
  /// Synchronized at least this often while there are writes. At least a millisecond.
  case interval(Duration)
  case none
}

import Foundation

/// The share of the work that long tests do: all of it in a release build; a hundredth in a debug build and in that of
/// `tools/test`, which defines `DEBUG` as well; and as much as `DENDRO_SIMULATION_SCALE` says if it is set.
package enum Scale {
  package static let share: Double = {
    if let asked { return asked }
    #if DEBUG
      return 0.01
    #else
      return 1
    #endif
  }()

  /// What is asked for by the variable; nil if it is not set.
  private static let asked: Double? = {
    guard let text = ProcessInfo.processInfo.environment["DENDRO_SIMULATION_SCALE"],
      let scale = Double(text), scale > 0
    else { return nil }
    return scale
  }()

  /// The only seed that histories of clusters are to have, as `DENDRO_SEED` says, to see one again that has failed.
  package static let onlySeed =
    ProcessInfo.processInfo.environment["DENDRO_SEED"].flatMap { UInt64($0) }

  /// `count` of the share; at least one.
  package static func scaled(_ count: Int) -> Int { scaled(count, by: share) }

  /// So many seeds, from `first` on; a fifth of them in a share.
  package static func seeds(_ count: UInt64, from first: UInt64 = 1) -> Range<UInt64> {
    first..<first + (share < 1 ? max(1, count / 5) : count)
  }

  /// What the share has to reach of a goal: jobs differ, and few of them may all be small ones.
  package static func goal(_ count: Int) -> Int { share < 1 ? 1 : scaled(count) }

  /// `count` of the share for what other processes do, on real disks: a tenth in a debug build.
  package static func ofProcesses(_ count: Int) -> Int { scaled(count, by: asked ?? processShare) }

  private static let processShare: Double = {
    #if DEBUG
      return 0.1
    #else
      return 1
    #endif
  }()

  /// How far apart the jobs of a sweep are that are run if it lists all that there is: 1 for the whole work,
  /// otherwise `sampled`, spread over the whole list. A prime meets every kind of job in time, whatever the
  /// order in which the list combines them.
  package static func stride(_ sampled: Int) -> Int { share < 1 ? sampled : 1 }

  private static func scaled(_ count: Int, by share: Double) -> Int {
    max(1, Int((Double(count) * share).rounded(.up)))
  }
}

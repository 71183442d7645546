extension Command {
  static let demo = Command(
    name: "demo", summary: "show on real data that what was acknowledged survives a kill",
    discussion: """
      Imports the ISO code lists of Debian's iso-codes package into a new database, starts a second
      process in which many writers post, star, count and remove at once while listeners keep a list of
      the posts with most stars, kills that process with SIGKILL, opens the database again and compares it
      with the writers' own record of what was acknowledged. Exit code 1 if the two differ.
      """,
    parameters: [
      Parameter(
        name: "DIRECTORY", summary: "a new one, kept; one in the temporary folder if left out",
        isOptional: true)
    ],
    options: [
      Option(name: "writers", short: "w", value: "N", summary: "concurrent writers (16)"),
      Option(name: "seconds", short: "s", value: "N", summary: "how long they write (3)"),
      Option(
        name: "data", value: "FOLDER", summary: "iso_*.json files (/usr/share/iso-codes/json)"),
      Option(name: "keep", short: "k", summary: "keep the temporary directory"),
    ],
    examples: [
      Example(line: "dendro demo", summary: "the main job"),
      Example(line: "dendro demo blog && dendro log blog", summary: "and a look around afterwards"),
    ],
    run: { try Demonstration($0).run() })

  /// The process that ``demo`` starts and kills.
  static let demoWriter = Command(
    name: "demo-writer", summary: "write a blog and report every acknowledgement, until killed",
    parameters: [.directory],
    options: [
      Option(name: "writers", value: "N", summary: "concurrent writers"),
      Option(name: "seed", value: "N", summary: "for what they do"),
    ],
    isHidden: true,
    run: { arguments in
      let writers = try arguments.integer("writers", in: 1...1000) ?? 16
      let seed = try arguments.integer("seed", in: 0...UInt64.max) ?? 1
      let blog = try BlogWriters(
        directory: arguments.directory, writers: writers, seed: seed)
      blog.runUntilKilled()
    })
}

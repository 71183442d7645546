import DendroStorage
import DendroTree

extension Command {
  static let export = Command(
    name: "export", summary: "write what is at a location as JSON",
    discussion: """
      Writes the export form, with priorities, of one moment; 'import' gives back the same tree. If
      nothing is, that is null, and the exit code 1. A FILE is replaced once all is written, and keeps its
      mode; links are followed, and pipes and devices are written to. Works beside a running writer.
      """,
    parameters: [.directory, .optionalPath],
    options: [
      Option(name: "output", short: "o", value: "FILE", summary: "instead of standard output"),
      Option(name: "pretty", short: "p", summary: "one entry a line"),
      Option(name: "value", summary: "without priorities"),
      .at, .salvage, .json,
    ],
    examples: [
      Example(line: "dendro export db / -o backup.json", summary: "everything into a file"),
      Example(line: "dendro export db /users --pretty | less", summary: "to read"),
      Example(line: "dendro export db / --at 1200", summary: "as it was after that write"),
    ],
    run: { arguments in
      try exportTree(arguments)
    })

  private static func exportTree(_ arguments: Arguments) throws -> ExitCode {
    let path = arguments.value("output")
    if arguments.wantsJSON, path == nil || path == "-" {
      throw Failure.usage("--json is about the file of --output; the export itself is JSON anyway")
    }
    let state = try ReadState(arguments, path: arguments.positional(1))
    let node = state.node
    let output = try OutputFile(path)
    if output.isReplacement { Interruption.listen() }
    let progress = Progress("exporting")
    var bytes: UInt64 = 0
    let style = JSONStyle(
      arguments.has("value") ? .value : .export, isPretty: arguments.has("pretty"))
    do {
      try JSONWriter.write(node, style: style) { part in
        if output.isReplacement, Interruption.isRequested { throw Interruption.Ended() }
        try output.write(part)
        bytes += UInt64(part.count)
        if !output.isStandardOutput { progress.update(bytes, of: nil, Format.bytes(bytes)) }
      }
      try [UInt8(ascii: "\n")].withUnsafeBytes(output.write)
      try output.finish()
    } catch is Interruption.Ended {
      progress.clear()
      Terminal.note("dendro: interrupted; nothing was written")
      return .interrupted
    }
    progress.clear()
    if !output.isStandardOutput {
      let seconds = progress.seconds
      let leaves = node.leafCount()
      let terminal = try Terminal(color: arguments.value("color"))
      if arguments.wantsJSON {
        try terminal.print(
          JSONValue.object([
            ("lsn", .unsigned(state.lsn.rawValue)),
            ("path", .string(state.location.description)), ("file", .string(path ?? "")),
            ("leaves", .count(leaves)), ("bytes", .unsigned(bytes + 1)),
            ("seconds", .number(seconds)),
          ]).text)
      } else {
        try terminal.print(
          "exported \(Format.count(leaves, "leaf")), \(Format.bytes(bytes + 1)), as of write "
            + "\(state.lsn), in \(Format.seconds(seconds))")
      }
      try terminal.flush()
    }
    return node.isEmpty ? .problem : .success
  }
}

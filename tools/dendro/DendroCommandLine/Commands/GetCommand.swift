import DendroStorage
import DendroTree

extension Command {
  static let get = Command(
    name: "get", summary: "print what is at a location",
    discussion: """
      Prints JSON; null, with exit code 1, if nothing is. Works beside a running writer. PATH may
      end in .priority.

      The options from --order-by on pick children as the API's queries do, and print them in order:
      null < false < true < numbers < strings < what has children; ties by key.
      """,
    parameters: [.directory, .optionalPath],
    options: [
      Option(name: "export", short: "e", summary: "with priorities, as 'export' writes them"),
      Option(name: "shallow", short: "s", summary: "only the keys of the children; true for each"),
      Option(name: "compact", short: "c", summary: "without white space"),
      .at, .salvage,
      Option(name: "raw", short: "r", summary: "a string without quotes and escapes"),
      .json,
    ] + QueryOptions.all,
    examples: [
      Example(line: "dendro get db /users/ada", summary: "one subtree"),
      Example(line: "dendro get db / --shallow", summary: "the keys at the root"),
      Example(line: "dendro get db /users/ada --at 1200", summary: "as it was after that write"),
      Example(line: "dendro get db /users/ada/name --raw", summary: "just the text"),
      Example(
        line: "dendro get db /posts --order-by child:stars --limit-to-last 10",
        summary: "the ten with most stars, the best last"),
      Example(
        line: "dendro get db /log --order-by key --start-at 2026-08 --end-before 2026-09",
        summary: "the keys of a month"),
    ],
    run: { arguments in
      let query = try QueryOptions.parameters(arguments)
      let state = try ReadState(arguments, path: arguments.positional(1))
      var node = state.node
      if let query { node = node.filtered(by: query) }
      let order = node.isBranch ? query?.order : nil
      let found = !node.isEmpty
      if order == nil, arguments.has("shallow"), node.isBranch {
        var keys = NodeBuilder()
        for (key, _) in node.children { keys.append(key, Node(.bool(true))) }
        node = keys.finish(priority: nil)
      }
      let terminal = try Terminal(color: arguments.value("color"))
      let form: JSONStyle.Form = arguments.has("export") ? .export : .value
      let value: JSONValue =
        if let order, arguments.has("shallow") {
          .object(node.children(in: order).map { ($0.key.string, .bool(true)) })
        } else if let order {
          .children(of: node, in: order, form)
        } else {
          .node(node, JSONStyle(form))
        }
      if arguments.wantsJSON {
        try terminal.print(
          JSONValue.object([
            ("lsn", .unsigned(state.lsn.rawValue)), ("path", .string(state.location.description)),
            ("exists", .bool(found)), ("value", value),
          ]).text)
        try terminal.flush()
      } else if arguments.has("raw"), case .string(let text)? = node.scalar {
        try terminal.print(text)
        try terminal.flush()
      } else if case .object = value {
        var text = arguments.has("compact") ? value.text : value.prettyText
        if terminal.usesColor {
          var highlighter = JSONHighlighter()
          text = String(
            decoding: highlighter.colored(text.utf8) + highlighter.finish(), as: UTF8.self)
        }
        if Platform.isTerminal(1) {
          var escaping = TerminalJSON()
          text = String(decoding: escaping.escaped(text.utf8), as: UTF8.self)
        }
        try terminal.print(text)
        try terminal.flush()
      } else {
        let output = try OutputFile(nil)
        let style = JSONStyle(form, isPretty: !arguments.has("compact"))
        if terminal.usesColor {
          var highlighter = JSONHighlighter()
          try JSONWriter.write(node, style: style) { part in
            try highlighter.colored(part).withUnsafeBytes(output.write)
          }
          try highlighter.finish().withUnsafeBytes(output.write)
        } else {
          try JSONWriter.write(node, style: style, to: output.write)
        }
        try terminal.print()
        try terminal.flush()
      }
      return found ? .success : .problem
    })
}

import DendroTree

/// A tree as the tables write it: `5`, `"x"`, `{a:1,b:{c:true}}`, `5!9` with priority 9, `-` for
/// nothing.
func tree(_ text: String) throws -> Node {
  var parser = TreeNotation(rest: Substring(text))
  return try parser.node()
}

func path(_ text: String) throws -> Path { try Path(parsing: text) }

private struct TreeNotation {
  var rest: Substring

  mutating func node() throws -> Node {
    if take("-") { return .empty }
    var node = Node.empty
    if take("{") {
      var builder = NodeBuilder()
      while !take("}") {
        let key = rest.prefix { $0 != ":" }
        rest = rest.dropFirst(key.count + 1)
        builder.append(try Key(String(key)), try self.node())
        _ = take(",")
      }
      node = builder.finish()
    } else {
      node = Node(scalar())
    }
    return take("!") ? node.settingPriority(scalar()) : node
  }

  mutating func scalar() -> Scalar {
    if take("\"") {
      let text = rest.prefix { $0 != "\"" }
      rest = rest.dropFirst(text.count + 1)
      return .string(String(text))
    }
    let word = rest.prefix { !",}!".contains($0) }
    rest = rest.dropFirst(word.count)
    if word == "true" || word == "false" { return .bool(word == "true") }
    return Int64(word).map { .integer($0) } ?? .double(Double(word) ?? 0)
  }

  mutating func take(_ character: Character) -> Bool {
    // A minus before a digit is a number's.
    guard rest.first == character,
      character != "-" || !(rest.dropFirst().first?.isNumber ?? false)
    else { return false }
    rest.removeFirst()
    return true
  }
}

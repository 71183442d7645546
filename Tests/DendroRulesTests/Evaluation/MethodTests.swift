import DendroRules
import Testing

/// The methods of snapshots and strings.
@Suite("Methods")
struct MethodTests {
  private static let data = """
    {"s": "text", "n": 4, "b": false, "o": {"x": {"y": 1}}, "l": {".value": "leaf", ".priority": 7},
     "p": {".priority": "high", "x": 1}, "u": "e\u{301}😀", "i": 9007199254740993}
    """

  @Test(
    "of snapshots",
    arguments: [
      "data.child('s').val() == 'text'", "data.child('n').val() == 4",
      "data.child('b').val() == false",
      "data.child('l').val() == 'leaf'", "data.child('zz').val() == null",
      "data.child('o').val() != null",
      "!(data.child('o').val() == data.child('o').val())", "data.child('o').val() != 'x'",
      "data.child('o/x/y').val() == 1", "data.child('/o//x/').exists()", "data.child('').exists()",
      "!data.child('.').exists()", "!data.child('..').exists()", "!data.child('o/../s').exists()",
      "!data.child('./s').exists()", "!data.child('a.b#c').exists()",
      "data.child('.').val() == null",
      "!data.child('.').child('a').exists()", "data.child('.').parent().child('n').exists()",
      "data.child('s/t').val() == null", "!data.child('s/t').exists()",
      "data.child('o/x').parent().child('x/y').val() == 1", "data.parent().child('p').exists()",
      "data.child('o').parent().parent().child('p/n').val() == 4", "data.parent().exists()",
      "data.hasChild('o')", "data.hasChild('o/x/y')", "!data.hasChild('zz')", "!data.hasChild('.')",
      "data.hasChildren()", "!data.child('s').hasChildren()", "!data.child('zz').hasChildren()",
      "data.hasChildren(['s', 'n'])", "!data.hasChildren(['s', 'zz'])",
      "data.hasChildren(['o/x', 's'])",
      "data.hasChildren([])", "data.child('s').hasChildren([])",
      "!data.child('s').hasChildren(['a'])",
      "data.child('s').exists()", "data.child('b').exists()", "!data.child('zz').exists()",
      "data.child('l').getPriority() == 7", "data.child('p').getPriority() == 'high'",
      "data.child('s').getPriority() == null", "data.child('zz').getPriority() == null",
      "data.child('.').getPriority() == null",
      "data.child('n').isNumber() && !data.child('s').isNumber() && !data.child('zz').isNumber()",
      "data.child('s').isString() && !data.child('n').isString() && !data.child('o').isString()",
      "data.child('b').isBoolean() && !data.child('n').isBoolean()", "data.child('l').isString()",
      "root.child('p/s').val() == 'text'", "root.exists()", "data.child('o')['val']() != null",
    ])
  func snapshots(expression: String) throws { #expect(try allows(expression, Self.data)) }

  @Test(
    "of strings",
    arguments: [
      "'abc'.length == 3", "''.length == 0", "data.child('s').val().length == 4",
      "'é😀'.length == 3",
      "data.child('u').val().length == 4", "'abc'.contains('b')", "'abc'.contains('')",
      "!'abc'.contains('ac')", "''.contains('')", "!''.contains('a')", "'aaab'.contains('aab')",
      "'abababac'.contains('ababac')", "'abc'.beginsWith('ab')", "'abc'.beginsWith('')",
      "!'abc'.beginsWith('abcd')", "!'abc'.beginsWith('b')", "'abc'.endsWith('bc')",
      "'abc'.endsWith('')",
      "!'abc'.endsWith('zabc')", "!'abc'.endsWith('b')",
      // One scalar is no part of another, and a mark is not its letter.
      "!'e\u{301}'.contains('\u{e9}')", "'e\u{301}'.beginsWith('e')", "'e\u{301}' != '\u{e9}'",
      "'aXbX'.replace('X', '') == 'ab'", "'a/a/g'.replace('/a/g', 'x') == 'ax'",
      "'aaa'.replace('aa', 'b') == 'ba'", "'abc'.replace('z', 'y') == 'abc'",
      "'abc'.replace('', '-') == '-a-b-c-'", "'é'.replace('', '-') == '-é-'",
      "''.replace('', 'x') == 'x'",
      "'.+'.replace('.', '$1') == '$1+'", "'AbÉ'.toLowerCase() == 'abé'",
      "'abé'.toUpperCase() == 'ABÉ'",
      "'ß'.toUpperCase() == 'SS'", "data.child('s').val().toUpperCase() == 'TEXT'",
      "'abc'.matches(/b/)", "!'abc'.matches(/B/)", "'abc'.matches(/B/i)", "'a/b'.matches(/a\\/b/)",
      "'a/b'.matches(/[/]/)", "data.child('s').val().matches(/^te.t$/)",
    ])
  func strings(expression: String) throws { #expect(try allows(expression, Self.data)) }

  @Test(
    "what fails",
    arguments: [
      ("root.parent().exists()", "The root has no parent."),
      ("data.parent().parent().exists()", "The root has no parent."),
      (
        "data.child('n').val().contains('4')",
        "Only a string has a length and the methods of strings."
      ),
      (
        "data.child('zz').val().contains('4')",
        "Only a string has a length and the methods of strings."
      ),
      (
        "data.child('o').val().matches(/a/)",
        "Only a string has a length and the methods of strings."
      ),
      (
        "data.child('zz').val().length == 0",
        "Only a string has a length and the methods of strings."
      ),
      (
        "data.child('n').val().length == 1",
        "Only a string has a length and the methods of strings."
      ),
      ("auth.uid.length == 1", "Only a string has a length and the methods of strings."),
      (
        "data.child('b').val().toLowerCase() == ''",
        "Only a string has a length and the methods of strings."
      ),
      (
        "data.child('n').val().replace('a', 'b') == ''",
        "Only a string has a length and the methods of strings."
      ),
      ("auth.a.contains('x')", "Only a string has a length and the methods of strings."),
      ("data.child(auth.uid).exists()", "The argument of the method is not a string."),
      ("data.hasChild(auth.uid)", "The argument of the method is not a string."),
      ("data.hasChildren(['zz', auth.uid])", "The argument of the method is not a string."),
      ("data.child(data.child('n').val()).exists()", "The argument of the method is not a string."),
      ("'a'.contains(data.child('n').val())", "The argument of the method is not a string."),
      ("'a'.beginsWith(auth.uid)", "The argument of the method is not a string."),
      ("'a'.endsWith(data.child('o').val())", "The argument of the method is not a string."),
      ("'a'.replace(auth.uid, 'b') == 'a'", "The argument of the method is not a string."),
      ("'a'.replace('b', auth.uid) == 'a'", "The argument of the method is not a string."),
      ("auth[data.val()] == null", "Only a string or a number can be an index."),
      ("auth[0.5] == null", "Only a string or a number can be an index."),
    ])
  func failing(expression: String, reason: String) throws {
    #expect(try failure(expression, Self.data) == reason)
    #expect(try !allows(expression, Self.data))
    // Null is not converted: a child called «null» is not found.
    #expect(try !allows(expression, "{\"null\": 1, \"o\": {\"x\": 1}, \"n\": 4, \"b\": false}"))
  }
}

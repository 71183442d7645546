import DendroRules
import Testing

/// The table of types: what each position takes, and what it says to the rest.
@Suite("Types")
struct TypeTests {
  @Test(
    "accepted",
    arguments: [
      "1 == 1", "auth > 1", "auth + 1 == 1", "now > 'a'", "'a' === 1", "auth[$x] == 1",
      "query.orderByKey", "query.limitToFirst <= 10", "data.child('./x').exists()",
      "data.val() == true", "auth.x == true", "!query.orderByValue", "query.orderByChild == 'a'",
      "$x.length > 1", "data.val().length == 1", "auth.uid.length == 1", "'a'.contains('b')",
      "auth.contains('x')", "auth.uid['contains']('x')", "data['exists']()", "(data).exists()",
      "(data.exists)()", "((data)['child'])('a').exists()", "data.hasChildren()",
      "data.hasChildren([])", "data.hasChildren(['a', $x, auth.uid, data.val()])",
      "data.hasChildren((['a']))", "null == null", "now - 1 == 0", "-data.val() == 1",
      "-auth.x == 1", "-query.limitToFirst == -1", "auth.uid[0] == 'a'", "auth['a']['b'] == 1",
      "auth[now] == 1", "data.getPriority() == 1", "data.getPriority().length == 1",
      "'a'.replace('b', 'c') == 'a'", "'a'.matches(/b/i)", "'a'.matches((/b/))",
      "(true ? 'a' : 1) == 'a'", "(true ? 'a' : 1) - 1 == 0", "data.child(true ? 'a' : 1).exists()",
      "(true ? /a/ : 1) == 1", "(true ? data : 1) == 1", "(true ? data.val : 1) == 1",
      "(true ? query : 1) == 1", "(true ? 'a' : 'b').length == 1", "(true ? 'a' : 1).length == 1",
      "(true ? 1 : data.val()).contains('a')", "true ? false : true",
      "(true ? data : root).exists()",
      "'a' + 1 == 'a1'", "data.val() + 'a' == 'a'", "(data.val() + 1).length == 1", "1 % 2 == 1",
      "auth.a.b.c.d == null", "auth.val == null", "auth.exists == null",
      "data.child(data.val()).exists()",
      "newData.parent().parent().exists()", "'a' < 'b'", "query.startAt < query.endAt", "!!true",
      "(now)== 1", "$x==='a'&&$x!=='b'||$x!=\"c\"", ".5 < 1e3", "1.5e-3<2E+3", "'\\'' == \"'\"",
    ])
  func accepted(expression: String) { #expect(refusal(of: expression) == nil) }

  @Test(
    "operators, word for word",
    arguments: [
      ("1", "Expression must evaluate to a boolean."),
      ("'true'", "Expression must evaluate to a boolean."),
      ("null", "Expression must evaluate to a boolean."),
      ("data", "Expression must evaluate to a boolean."),
      ("data.exists", "Expression must evaluate to a boolean."),
      ("data.val()", "Expression must evaluate to a boolean."),
      ("auth", "Expression must evaluate to a boolean."),
      ("auth.admin", "Expression must evaluate to a boolean."),
      ("query", "Expression must evaluate to a boolean."),
      ("query.limitToFirst", "Expression must evaluate to a boolean."),
      ("/a/", "Expression must evaluate to a boolean."),
      ("true ? 1 : true", "Expression must evaluate to a boolean."),
      ("!1", "! only operates on booleans."), ("!data.val()", "! only operates on booleans."),
      ("!auth.x", "! only operates on booleans."), ("!-1", "! only operates on booleans."),
      ("!(true ? true : 1)", "! only operates on booleans."),
      ("1 && true", "Left operand of && must be boolean."),
      ("true && 1", "Right operand of && must be boolean."),
      ("data.val() || true", "Left operand of || must be boolean."),
      ("true || auth.x", "Right operand of || must be boolean."),
      ("true && true && 1", "Right operand of && must be boolean."),
      ("1 ? true : false", "condition of ? must be boolean."),
      ("data.val() ? true : false", "condition of ? must be boolean."),
      (
        "data == 1", "Invalid == expression: left operand is not a number, boolean, string, null."
      ),
      (
        "/a/ === 1", "Invalid == expression: left operand is not a number, boolean, string, null."
      ),
      (
        "query == 1",
        "Invalid == expression: left operand is not a number, boolean, string, null."
      ),
      (
        "data.val == 1",
        "Invalid == expression: left operand is not a number, boolean, string, null."
      ),
      (
        "1 == data",
        "Invalid == expression: right operand is not a number, boolean, string, or null."
      ),
      (
        "1 === root",
        "Invalid == expression: right operand is not a number, boolean, string, or null."
      ),
      (
        "data != 1",
        "Invalid != expression: left operand is not a number, boolean, string, or null."
      ),
      (
        "1 !== data",
        "Invalid != expression: right operand is not a number, boolean, string, or null."
      ),
      ("true > 1", "Invalid > expression: left operand must be a number or string."),
      ("1 > true", "Invalid > expression: right operand must be a number or string."),
      ("null < 1", "Invalid < expression: left operand must be a number or string."),
      ("data <= 1", "Invalid <= expression: left operand must be a number or string."),
      ("1 >= /a/", "Invalid >= expression: right operand must be a number or string."),
      ("true + 1 == 1", "Invalid + expression: left operand is not a number or string."),
      ("1 + null == 1", "Invalid + expression: right operand is not a number or string."),
      ("'a' - 1 == 1", "Invalid - expression: left operand is not a number."),
      ("1 - 'a' == 1", "Invalid - expression: right operand is not a number."),
      ("$x * 1 == 1", "Invalid * expression: left operand is not a number."),
      ("1 / true == 1", "Invalid / expression: right operand is not a number."),
      ("1 % null == 1", "Invalid % expression: right operand is not a number."),
      ("-'a' == 1", "- only operates on numbers."), ("-true == 1", "- only operates on numbers."),
      ("-data == 1", "- only operates on numbers."),
      ("['a'] == 1", "Unexpected array literal."), ("1 == ['a']", "Unexpected array literal."),
      ("1 && ['a']", "Unexpected array literal."), ("![]", "Unexpected array literal."),
      ("[] + data == 1", "Unexpected array literal."), ("[1][0] == 1", "Unexpected array literal."),
      ("1 ? [] : 2", "Unexpected array literal."), ("[]", "Unexpected array literal."),
      ("foo", "Unknown variable 'foo'."), ("$y == 'a'", "Unknown variable '$y'."),
      ("1 && foo", "Unknown variable 'foo'."), ("foo()", "Unknown variable 'foo'."),
      ("data = 1", "Rule expressions may not contain assignments."),
      ("auth.x = true", "Rule expressions may not contain assignments."),
      ("now += 1", "Rule expressions may not contain assignments."),
      ("= 1", "Rule expressions may not contain assignments."),
    ] as [(String, String)])
  func operators(expression: String, message: String) {
    #expect(refusal(of: expression) == message)
  }

  @Test(
    "members and calls, word for word",
    arguments: [
      ("data.foo", "No such method/property 'foo'."),
      ("data['foo']()", "No such method/property 'foo'."),
      ("data.length", "No such method/property 'length'."),
      ("query.foo", "No such method/property 'foo'."),
      ("query.contains('a')", "No such method/property 'contains'."),
      ("'a'.foo", "No such method/property 'foo'."),
      ("$x.val()", "No such method/property 'val'."),
      ("data.val().foo", "No such method/property 'foo'."),
      ("(true ? 'a' : 1).foo == 1", "No such method/property 'foo'."),
      ("now.foo", "Invalid property access: target is not an object."),
      ("now.length", "Invalid property access: target is not an object."),
      ("true.foo", "Invalid property access: target is not an object."),
      ("null.foo", "Invalid property access: target is not an object."),
      ("/a/.foo", "Invalid property access: target is not an object."),
      ("data.val.foo", "Invalid property access: target is not an object."),
      ("query.limitToFirst.foo", "Invalid property access: target is not an object."),
      ("query.startAt.length == 1", "Invalid property access: target is not an object."),
      ("(true ? 1 : null).length", "Invalid property access: target is not an object."),
      ("(true ? data : 1).val()", "Invalid property access: target is not an object."),
      ("(true ? auth : 1).x == 1", "Invalid property access: target is not an object."),
      ("'abc'[0]", "Invalid property access."), ("now[0]", "Invalid property access."),
      ("data[$x]", "Invalid property access."), ("data.val()[0]", "Invalid property access."),
      ("query[$x]", "Invalid property access."), ("null[1]", "Invalid property access."),
      (
        "auth.exists()", "Type error: Function call on target that is not a function."
      ),
      (
        "data.val().length()", "Type error: Function call on target that is not a function."
      ),
      ("now()", "Type error: Function call on target that is not a function."),
      ("auth.uid.foo()", "Type error: Function call on target that is not a function."),
      ("data()", "Type error: Function call on target that is not a function."),
      ("data.exists()()", "Type error: Function call on target that is not a function."),
      ("data.child().exists()", "child() expects 1 argument."),
      ("data.child('a', 'b').exists()", "child() expects 1 argument."),
      ("data.hasChild()", "hasChild() expects 1 argument."),
      ("'a'.contains()", "contains() expects 1 argument."),
      ("'a'.beginsWith('a', 'b')", "beginsWith() expects 1 argument."),
      ("'a'.endsWith()", "endsWith() expects 1 argument."),
      ("data.child(1).exists()", "child() expects a string argument."),
      ("data.child(now).exists()", "child() expects a string argument."),
      ("data.child(data).exists()", "child() expects a string argument."),
      ("data.child(null).exists()", "child() expects a string argument."),
      ("data.child(query.startAt).exists()", "child() expects a string argument."),
      ("data.child(/a/).exists()", "child() expects a string argument."),
      ("data.hasChild(true)", "hasChild() expects a string argument."),
      ("'a'.contains(1)", "contains() expects a string argument."),
      ("'a'.beginsWith(null)", "beginsWith() expects a string argument."),
      ("'a'.endsWith(data)", "endsWith() expects a string argument."),
      ("data.exists(1)", "exists() expects no arguments."),
      ("data.val('a') == 1", "val() expects no arguments."),
      ("data.parent(1).exists()", "parent() expects no arguments."),
      ("data.getPriority(1) == 1", "getPriority() expects no arguments."),
      ("data.isString(1)", "isString() expects no arguments."),
      ("data.isNumber(1)", "isNumber() expects no arguments."),
      ("data.isBoolean(1)", "isBoolean() expects no arguments."),
      ("'a'.toLowerCase(1) == 'a'", "toLowerCase() expects no arguments."),
      ("'a'.toUpperCase(1) == 'a'", "toUpperCase() expects no arguments."),
      ("'a'.replace('b') == 'a'", "replace() expects two arguments."),
      ("'a'.replace('b', 'c', 'd') == 'a'", "replace() expects two arguments."),
      ("'a'.replace(1, 'c') == 'a'", "Argument 1 of replace() must be a string."),
      ("'a'.replace('b', 1) == 'a'", "Argument 2 of replace() must be a string."),
      ("'a'.replace(/b/, 'c') == 'a'", "Argument 1 of replace() must be a string."),
      ("'a'.matches()", "matches() expects 1 regular expression literal argument."),
      ("'a'.matches(/a/, /b/)", "matches() expects 1 regular expression literal argument."),
      ("'a'.matches('a')", "matches() expects a regular expression literal argument."),
      ("'a'.matches(data.val())", "matches() expects a regular expression literal argument."),
      (
        "'a'.matches(true ? /a/ : /b/)", "matches() expects a regular expression literal argument."
      ),
      ("'a'.matches(/a/g)", "regular expressions do not support flags other than i"),
      ("'a'.matches(/a/ig)", "regular expressions do not support flags other than i"),
      ("'a'.matches(/a", "unterminated regular expression literal"),
      ("'a'.matches(/[/)", "unterminated regular expression literal"),
      (
        "data.hasChildren(['a'], ['b'])",
        "hasChildren() expects only a single argument (containing an array of child names)."
      ),
      (
        "data.hasChildren('a', 'b')",
        "hasChildren() expects only a single argument (containing an array of child names)."
      ),
      ("data.hasChildren('a')", "hasChildren() expects an array of child names."),
      ("data.hasChildren(data.val())", "hasChildren() expects an array of child names."),
      ("data.hasChildren([1])", "hasChildren() expects an array of strings."),
      ("data.hasChildren([data])", "hasChildren() expects an array of strings."),
      ("data.hasChildren(['a', null])", "hasChildren() expects an array of strings."),
      ("data.hasChildren([['a']])", "Unexpected array literal."),
      ("data.child(['a']).exists()", "Unexpected array literal."),
      ("'a'.matches(['a'])", "Unexpected array literal."),
    ] as [(String, String)])
  func members(expression: String, message: String) {
    #expect(refusal(of: expression) == message)
  }

  @Test("newData is refused in .read alone")
  func newData() {
    #expect(
      refusal(of: "newData.exists()", .read) == "newData is invalid in .read expressions.")
    #expect(refusal(of: "newData.exists()", .write) == nil)
    #expect(refusal(of: "newData.exists()", .validate) == nil)
    #expect(refusal(of: "query.orderByKey && root.exists()", .validate) == nil)
  }

  @Test(
    "syntax",
    arguments: [
      ("", "Unexpected end of expression."), ("1 +", "Unexpected end of expression."),
      ("true true", "Unexpected 't'."), ("true;", "Unexpected ';'."), ("(true", "Expected ')'."),
      ("2 ** 2 == 4", "Unexpected '*'."), ("true ? false", "Expected ':'."),
      ("data.", "Expected a name."), ("auth['a'", "Expected ']'."),
      ("data.child('a'", "Expected ',' or ')'."),
      ("'a", "Unterminated string literal."),
      ("'\\u12' == ''", "Invalid escape in a string literal."),
      ("true & true", "Unexpected '&'."), ("é", "Unexpected 'é'."),
      ("1e999 == 1", "The number is out of range."),
    ])
  func syntax(expression: String, message: String) { #expect(refusal(of: expression) == message) }

  @Test("long expressions are accepted: 4,426 characters, and as long as the text may be")
  func long() {
    let link = " || auth.uid == 'abcdefghijklmnopqrstuvwxyz'"
    #expect(refusal(of: "true" + String(repeating: link, count: 100)) == nil)
    for link in [" || true", "+ 1", ".child('a')", " == 1", " ? true : false", " && 1 < 2"] {
      let count = RuleLimits.textBytes / (link.utf8.count + 1) - 20
      let start =
        link == " == 1" ? "1" : link == "+ 1" ? "1" : link == ".child('a')" ? "data" : "true"
      let message = refusal(of: start + String(repeating: link, count: count))
      #expect(message == nil || message?.hasPrefix("The expression") != true)
    }
  }
}

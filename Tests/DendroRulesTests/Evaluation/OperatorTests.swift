import DendroRules
import Testing

/// What operators do, and what they refuse.
@Suite("Operators")
struct OperatorTests {
  @Test(
    "true",
    arguments: [
      // What binds more tightly.
      "true == 1 < 2", "1 < 2 == 2 < 3", "(true ? true : true && false)", "10 - 4 - 3 == 3",
      "8 / 4 / 2 == 1", "7 % 4 * 2 == 6", "-1 + 2 == 1", "!(!false && false)", "2 + 3 * 4 == 14",
      "2 * 3 + 4 == 10", "(2 + 3) * 4 == 20", "1 + 2 < 2 + 2", "true || false && false",
      "false ? false : true ? true : false", "- -1 == 1", "!!true", "2 - -1 == 3", "-(1 + 2) == -3",
      "1 == 1 == true", "1 + 1 + 'a' == '2a'", "'a' + 1 + 1 == 'a11'",
      // Never converted.
      "!(data.val() == '5')", "data.val() == 5", "data.val() === 5.0", "!(data.val() == true)",
      "1 == 1.0", "data.child('x').val() == null", "data.val() != '5'", "data.val() !== null",
      "'a' == \"a\"", "0 == -0", "0.1 + 0.2 != 0.3", "data.val() == data.val()",
      // Orders.
      "1 < 2", "!(2 < 2)", "2 <= 2", "3 > 2", "2 >= 2", "'a' < 'b'", "'B' < 'a'", "'' < 'a'",
      "'a' <= 'a'",
      "'ab' > 'a'", "1.5 < 2", "2 > 1.5", "-1 < 0", "9007199254740993 > 9007199254740992.0",
      // By UTF-16: U+1F600 is D83D DE00, which comes before U+FFFD.
      "'😀' < '\u{FFFD}'",
      // Sums.
      "'a' + 1 == 'a1'", "1 + 'a' == '1a'", "'a' + 'b' == 'ab'", "'v' + 1.5 == 'v1.5'",
      "'' + 1.0 == '1'",
      "'' + 1e21 == '1e+21'", "'' + -0 == '0'", "1.5 + 1.5 == 3", "data.val() + 1 == 6",
      "9223372036854775807 + 0 == 9223372036854775807",
      "9223372036854775807 + 1 == 9223372036854775808",
      "5 - 7 == -2", "3 * 4 == 12", "7 / 2 == 3.5", "-7 / 2 == -3.5", "7 % 3 == 1", "-7 % 3 == -1",
      "7.5 % 2 == 1.5",
      "4611686018427387904 * 4 == 18446744073709551616.0", "-9223372036854775808 - 1 < 0",
      // What is no number.
      "(1/0 + '') == 'NaN'", "(-1/0 + '') == 'NaN'", "(1 % 0 + '') == 'NaN'", "(0/0 + '') == 'NaN'",
      "!(1/0 > 1)", "!(1/0 < 1)", "!(1/0 == 1/0)", "!(1/0 <= 1/0)", "!(1/0 >= 1)",
      "(1e308 * 10 + '') == 'Infinity'", "(-1e308 * 10 + '') == '-Infinity'",
      "1e308 * 10 > 9223372036854775807",
      // Lazy.
      "true || auth.a.contains('x')", "!(false && auth.a.contains('x'))",
      "true ? true : auth.a.contains('x')",
      "false ? auth.a.contains('x') : true", "false || false || true || auth.a.contains('x')",
      "(true ? 'a' : 1) == 'a'", "(false ? 'a' : 1) == 1", "!((true ? data : 1) == 1)",
      "(false ? data : 1) == 1",
      "!((true ? /a/ : 1) == 1)", "!((true ? data.val : 1) == null)",
      "(true ? data : root).val() == 5",
    ])
  func isTrue(expression: String) throws { #expect(try allows(expression, "5")) }

  @Test(
    "false",
    arguments: [
      "true || false ? false : true", "true ? false : true || true", "!false && false", "1 == 2",
      "null == false", "data.val() == 1", "false || false", "true && false", "1 > 1", "'a' > 'b'",
    ])
  func isFalse(expression: String) throws {
    #expect(try !allows(expression, "5"))
    #expect(try failure(expression, "5") == nil)
  }

  @Test("never equal across types")
  func types() throws {
    let values = ["null", "true", "false", "0", "1", "''", "'0'", "'1'", "'true'", "'null'"]
    for (index, a) in values.enumerated() {
      for (other, b) in values.enumerated() {
        #expect(try allows("\(a) == \(b)") == (index == other), "\(a) == \(b)")
        #expect(try allows("\(a) != \(b)") == (index != other), "\(a) != \(b)")
      }
    }
  }

  @Test(
    "what fails",
    arguments: [
      ("data.child('zz').val() < 1", "Only two numbers or two strings can be compared."),
      ("data.val() < 'a'", "Only two numbers or two strings can be compared."),
      ("now > 'a'", "Only two numbers or two strings can be compared."),
      ("auth > 1", "Only two numbers or two strings can be compared."),
      ("auth >= auth", "Only two numbers or two strings can be compared."),
      ("data.parent().val() <= 1", "Only two numbers or two strings can be compared."),
      ("auth + 1 == 1", "Only numbers and strings can be added."),
      ("'a' + auth == 'anull'", "Only numbers and strings can be added."),
      ("data.parent().val() + 'a' == ''", "Only numbers and strings can be added."),
      ("auth.a - 1 == 1", "Only numbers can be subtracted, multiplied and divided."),
      (
        "2 * data.child('zz').val() == 0", "Only numbers can be subtracted, multiplied and divided."
      ),
      ("auth.a / 1 == 1", "Only numbers can be subtracted, multiplied and divided."),
      ("1 % auth.a == 1", "Only numbers can be subtracted, multiplied and divided."),
      ("-auth.a == 1", "Only a number can be negated."),
      // An error anywhere makes the whole rule fail.
      ("auth.a.contains('x') || true", "Only a string has a length and the methods of strings."),
      ("!(auth.a.contains('x'))", "Only a string has a length and the methods of strings."),
      ("(auth.a > 1) == false", "Only two numbers or two strings can be compared."),
      ("auth.a > 1 ? true : true", "Only two numbers or two strings can be compared."),
    ])
  func failing(expression: String, reason: String) throws {
    #expect(try failure(expression, "5") == reason)
    #expect(try !allows(expression, "5"))
  }

  @Test(
    "what fails for a stored boolean",
    arguments: [
      ("data.val() < 1", "Only two numbers or two strings can be compared."),
      ("data.val() >= data.val()", "Only two numbers or two strings can be compared."),
      ("data.val() + 1 == 2", "Only numbers and strings can be added."),
      ("'a' + data.val() == 'atrue'", "Only numbers and strings can be added."),
      ("data.val() - 1 == 0", "Only numbers can be subtracted, multiplied and divided."),
      ("data.val() * 1 == 1", "Only numbers can be subtracted, multiplied and divided."),
      ("-data.val() == -1", "Only a number can be negated."),
      ("data.val().length == 4", "Only a string has a length and the methods of strings."),
      ("'a'.contains(data.val())", "The argument of the method is not a string."),
    ])
  func failingForBooleans(expression: String, reason: String) throws {
    #expect(try failure(expression, "true") == reason)
  }

  @Test(
    "what fails for a stored string",
    arguments: [
      ("data.val() < 1", "Only two numbers or two strings can be compared."),
      ("1 - data.val() == 0", "Only numbers can be subtracted, multiplied and divided."),
      ("data.val() % 2 == 0", "Only numbers can be subtracted, multiplied and divided."),
      ("-data.val() == -1", "Only a number can be negated."),
    ])
  func failingForStrings(expression: String, reason: String) throws {
    #expect(try failure(expression, "\"1\"") == reason)
  }
}

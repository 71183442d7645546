import DendroRules

extension FuzzTarget {
  /// Texts of rules, and then claims and a path, each behind a byte 0.
  static let rules = FuzzTarget(
    "rules", "security rules: texts, expressions, patterns, verdicts", byteLimit: 2048, weight: 20,
    seeds: {
      let texts = [
        #"{"rules":{".read":"auth != null","u":{"$u":{".write":"$u === auth.uid"}}}}"#,
        #"{"rules":{"a":{".validate":"newData.val().matches(/^a+b{2,3}$/i)",".write":true}}}"#,
        #"{"rules":{".write":"now > 1 && data.child('n').val() + 1 == newData.val()"}}"#,
        "{\"rules\":{// c\n\".read\":\"root.child('a/'+auth.uid).exists() ? true : false\",}}",
        #"{"rules":{".read":"query.limitToFirst <= 10",".indexOn":["a/b",".value"]}}"#,
        #"{"rules":{"$x":{".validate":"newData.hasChildren(['a','b'])"}}}"#,
      ]
      return texts.map { Array(($0 + "\0{\"uid\":\"u\"}\0u/u").utf8) }
    },
    body: { bytes in
      let parts = [UInt8](bytes).split(
        separator: 0, maxSplits: 2, omittingEmptySubsequences: false
      ).map { String(decoding: $0, as: UTF8.self) }
      guard let rules = attempt({ () throws(RuleTextError) in try Rules(parts[0]) }) else { return }
      try require(rules.text == parts[0], "the text is another one")
      let auth = parts.count > 1 ? try? RuleAuth.parsed(parts[1]) : nil
      let path = parts.count > 2 ? parts[2] : "a"
      let old = JSONTree()
      guard let new = try? old.setting(path, to: #"{"a":"aab","n":7,"u":{"b":true}}"#) else {
        return
      }
      for request in [
        try RuleRequest(reading: path, auth: auth ?? nil, now: 5),
        try RuleRequest(setting: path, auth: auth ?? nil, now: 5),
      ] {
        let verdict = rules.decide(
          request, data: old, newData: new, details: [.trace, .observations])
        try require(
          verdict.stepCount <= RuleLimits.steps + 4 * RuleLimits.stepsPerLocation, "too many steps")
        let again = rules.decide(request, data: old, newData: new)
        try require(again.isAllowed == verdict.isAllowed, "another verdict")
        try require(
          verdict.observations?.hold(data: old, newData: new) ?? false,
          "what was observed does not hold")
        _ = verdict.trace?.description
      }
    })

  /// Tests of rules.
  static let ruleTests = FuzzTarget(
    "ruletests", "tests of security rules", byteLimit: 2048, weight: 10,
    seeds: {
      let rules = #"{"data":{"a":1},"cases":["#
      return [
        #"{"name":"n","as":null,"operation":"read","path":"a","expect":"allow"}]}"#,
        #"{"as":{"uid":"u"},"operation":"set","path":"b","value":{".sv":"timestamp"},"now":5,"expect":"deny"}]}"#,
        #"{"operation":"update","path":"","value":{"a/b":null,"c":[1]},"expect":"deny"}]}"#,
        #"{"operation":"read","query":{"orderBy":"a/b","startAt":1,"limitToFirst":3},"expect":"deny"}]}"#,
      ].map { Array((rules + $0).utf8) }
    },
    body: { bytes in
      let text = String(decoding: bytes, as: UTF8.self)
      guard let tests = attempt({ () throws(RuleTextError) in try RuleTests(text) }) else { return }
      let rules = try Rules(
        #"{"rules":{".read":"data.exists()",".write":"auth.uid == 'u' || newData.val() > now"}}"#)
      let report = tests.run(rules)
      try require(report.results.count == tests.cases.count, "a case was left out")
      _ = report.description + report.coverage.description
    })
}

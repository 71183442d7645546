import DendroProtocol
import DendroTree
import Testing

@Suite("hashes of trees")
struct TreeHashTests {
  @Test(
    "the hashes that the official client computes",
    arguments: [
      ("null", ""), ("{\"a\":{}}", ""), ("0", "7ysMph9WPitGP7poMnMHMVPtUlI="),
      ("10", "+r5aI9HvKKagELki8SYKBk0q7D4="), ("1.5", "4MftviR9Z/2MQCMkjh2RNbvlLJc="),
      ("-3", "ALU0PPFYxIX2YFkRwLYyz/rUBY4="), ("\"\"", "Ki0Xy0V6morg0TO3Sxi/jwugYDQ="),
      ("\"a\"", "eMfSk0nU+CieTkCbO5r7cKNp7qU="), ("\"é\"", "1M+kSgpwpb2WVucwSmGGq+h8/uU="),
      ("\"😀\"", "MK8AFmo8GmKyFMO+8POk61hHbOQ="), ("true", "E5z61QM0lN/U2WsOnusszCTkR8M="),
      ("false", "aSSNoqcS4oQwJ2xxH20rvpp3zP0="),
      ("{\".value\":1,\".priority\":2}", "FvGzv2x5RbRTIc6uhMwY3pMW2oU="),
      ("{\".value\":\"x\",\".priority\":\"p\"}", "Ee+tTXV5cvjTnBMuKXMyU8fA5VY="),
      ("{\"a\":1,\"b\":2}", "AUZnXhNqrfbznYVxcCvNpzpjvTU="),
      ("{\"10\":false,\"2\":true}", "szDc6qTTi0d5yLJ1fePGH5RA9Fk="),
      (
        "{\"a\":{\".value\":1,\".priority\":9},\"b\":{\".value\":2,\".priority\":1}}",
        "Vdqfm3MkskXsIx13RPwT14loy+4="
      ),
      ("{\"a\":1,\".priority\":3}", "4dRhArPugqejHTgU57/GghV01fk="),
      ("{\"k\":{\"a\":1,\".priority\":\"z\"},\"j\":2}", "8s2hekPWtj1eVm85zOJmekGvTlU="),
      ("[\"x\",\"y\"]", "KtuknfwwJhsB3RrZnwAxD3+/Drs="),
      ("{\"01\":1,\"1\":2}", "WgaD4unZzqVmOtgdbNejSiHgXrM="),
    ])
  func vectors(data: String, hash: String) throws {
    #expect(try TreeHash.hash(json(data)) == hash)
  }

  @Test("equal nodes have equal hashes")
  func equalNodes() throws {
    #expect(try TreeHash.hash(json("1.0")) == TreeHash.hash(json("1")))
    #expect(try TreeHash.hash(json("-0")) == TreeHash.hash(json("0")))
  }

  @Test("SHA-1 of the standard's messages")
  func sha1() {
    func digest(_ bytes: some Sequence<UInt8>) -> String {
      SHA1.digest(of: Array(bytes)).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
    #expect(digest("".utf8) == "da39a3ee5e6b4b0d3255bfef95601890afd80709")
    #expect(digest("abc".utf8) == "a9993e364706816aba3e25717850c26c9cd0d89d")
    #expect(
      digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq".utf8)
        == "84983e441c3bd26ebaae4aa1f95129e5e54670f1")
    #expect(
      digest(repeatElement(UInt8(ascii: "a"), count: 1_000_000))
        == "34aa973cd4c4daa4f61eeb2bdbad27316534016f")
  }

  @Test("Base64", arguments: ["", "f", "fo", "foo", "foob", "fooba", "foobar"])
  func base64(text: String) {
    let encoded = Base64.encode(Array(text.utf8))
    #expect(Base64.decode(encoded.utf8) == Array(text.utf8))
    #expect(Base64.decode(encoded.utf8.filter { $0 != UInt8(ascii: "=") }) == Array(text.utf8))
  }

  @Test("Base64 of every byte, in both alphabets")
  func base64Alphabets() {
    let bytes = (0...255).map { UInt8($0) }
    let encoded = Base64.encode(bytes)
    #expect(encoded.utf8.count == 344 && encoded.hasSuffix("+fr7/P3+/w=="))
    #expect(Base64.decode(encoded.utf8) == bytes)
    let inURL = encoded.utf8.map { $0 == 0x2B ? 0x2D : $0 == 0x2F ? 0x5F : $0 }
    #expect(Base64.decode(inURL) == bytes)
  }

  @Test(
    "text that is no Base64",
    arguments: ["*", "A", "AAAAA", " AAA", "AAA\n", "A=AA", "AA=A", "A\u{0}AA", "AAé", "A.AA"])
  func noBase64(text: String) {
    #expect(Base64.decode(text.utf8) == nil)
  }

  @Test("a node with more than a hundred nodes or 100 KiB of text takes long to hash")
  func long() throws {
    let many = (0..<101).map { "\"k\($0)\":1" }.joined(separator: ",")
    let few = (0..<50).map { "\"k\($0)\":1" }.joined(separator: ",")
    let text = { (count: Int) in "\"" + String(repeating: "x", count: count) + "\"" }
    for short in ["null", "1", "{\(few)}", "{\"a\":{\(few)}}", text(100_000)] {
      #expect(try !TreeHash.takesLong(json(short)), "\(short.prefix(80))")
    }
    for long in [
      "{\(many)}", "{\"a\":{\(few)},\"b\":{\(few)}}", text(110_000),
      "{\"a\":\(text(60_000)),\"b\":\(text(60_000))}",
    ] { #expect(try TreeHash.takesLong(json(long)), "\(long.prefix(80))") }
  }
}

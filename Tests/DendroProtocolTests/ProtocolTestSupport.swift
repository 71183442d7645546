import DendroProtocol
import DendroTree

func json(_ text: String) throws -> Node { try JSONParser.parse(text) }

func path(_ text: String) throws -> Path { try Path(parsing: text) }

/// A request without a body.
func request(
  _ method: String, _ target: String, _ headers: [(String, String)] = []
) throws(RESTError) -> RESTRequest {
  try RESTRequest(method: method, target: target, headers: HTTPHeaders(headers))
}

/// The error of a request; nil if there is none.
func refusal(
  _ method: String, _ target: String, _ headers: [(String, String)] = [], body: String? = nil
) -> RESTError? {
  do throws(RESTError) {
    let request = try request(method, target, headers)
    if request.method.isWrite, let path = request.resource.path {
      _ = try draft(request, body ?? "", path)
    }
    return nil
  } catch {
    return error
  }
}

func draft(_ request: RESTRequest, _ body: String, _ path: Path) throws(RESTError) -> Draft {
  let bytes = Array(body.utf8)
  let result = bytes.withUnsafeBytes { bytes in
    Result { () throws(RESTError) in try RESTBody.draft(request, bytes, at: path) }
  }
  return try result.get()
}

extension RESTAnswer {
  var text: String {
    var body = body
    return String(decoding: body.rest(), as: UTF8.self)
  }
}

/// What a GET of the root answers if it has this data.
func answer(
  _ data: String, _ items: String = "", _ headers: [(String, String)] = []
) throws -> RESTAnswer {
  let suffix = items.isEmpty ? "" : "?" + items
  return RESTAnswer(reading: try json(data), try request("GET", "/.json" + suffix, headers))
}

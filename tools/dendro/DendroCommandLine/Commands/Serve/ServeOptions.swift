import Dendro
import DendroServer

/// What the arguments of `serve` say about the server.
struct ServeOptions {
  private let arguments: Arguments
  private let hosts: [String]

  init(_ arguments: Arguments, hosts: [String]) {
    self.arguments = arguments
    self.hosts = hosts
  }

  /// Whether clients need a credential.
  static func isRestricted(_ arguments: Arguments) -> Bool {
    ["secret-file", "token-secret-file", "token-keys"].contains { arguments.value($0) != nil }
  }

  func forServer(_ log: ServeLog) throws -> DatabaseServerOptions {
    var options = DatabaseServerOptions()
    options.port = try arguments.integer("port", in: 0...UInt16.max) ?? 9000
    options.hosts = hosts
    options.hostNames = try list("allow-host", "host name", DatabaseServer.isHostName)
    options.origins = try list(
      "allow-origin", "origin, such as https://app.example.com", DatabaseServer.isOrigin)
    options.tls = try tls()
    try addCredentials(to: &options)
    try addLimits(to: &options)
    addLog(to: &options, log)
    return options
  }

  /// What an option names, with commas between them.
  private func list(
    _ option: String, _ what: String, _ isValid: (String) -> Bool
  ) throws -> [String] {
    guard let text = arguments.value(option) else { return [] }
    guard !Self.isRestricted(arguments) else {
      throw Failure.usage(
        "--\(option) is for servers that are open to every client; this one answers under all names and to "
          + "pages of all origins, and asks for credentials")
    }
    let words = text.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
    for word in words where !isValid(word) {
      throw Failure.usage("--\(option): \(Failure.quoted(word)) is no \(what)")
    }
    return words
  }

  private func tls() throws -> TLSOptions? {
    switch (arguments.value("tls-certificate"), arguments.value("tls-key")) {
    case (nil, nil): return nil
    case (let certificate?, let key?):
      return TLSOptions(certificateFile: certificate, keyFile: key)
    default: throw Failure.usage("--tls-certificate and --tls-key need each other")
    }
  }

  // MARK: Credentials

  private func addCredentials(to options: inout DatabaseServerOptions) throws {
    options.secret = try arguments.value("secret-file").map { try secret(in: $0, byteMin: 8) }
    options.tokens = try tokens()
    options.rulesFile = arguments.value("rules")
    guard Self.isRestricted(arguments) else {
      if arguments.has("users") {
        throw Failure.usage("--users needs --token-secret-file or --token-keys")
      }
      let host = hosts.first { !DatabaseServer.isLoopback($0) }
      if host != nil, options.rulesFile != nil, !arguments.has("insecure") {
        // Nobody is an administrator; users and tokens are believed by no one.
        options.authorizer = AdministratorsAuthorizer()
        return
      }
      if let host, !arguments.has("insecure") {
        throw Failure.usage(
          "\(host) may be reached by others: everybody could read and write everything",
          hint:
            "--secret-file restricts it to administrators, --rules to what a file allows, --insecure opens it nevertheless"
        )
      }
      options.authorizer = OpenAuthorizer()
      options.trustsUnsignedTokens = true
      return
    }
    if arguments.has("insecure") {
      throw Failure.usage("--insecure contradicts --secret-file and the options for tokens")
    }
    if arguments.has("users"), options.tokens == nil {
      throw Failure.usage("--users needs --token-secret-file or --token-keys")
    }
    options.authorizer = arguments.has("users") ? UsersAuthorizer() : AdministratorsAuthorizer()
  }

  private func tokens() throws -> TokenOptions? {
    let keys = arguments.value("token-keys")
    let secretFile = arguments.value("token-secret-file")
    guard keys != nil || secretFile != nil else {
      for name in ["token-issuer", "token-audience"] where arguments.value(name) != nil {
        throw Failure.usage("--\(name) needs --token-secret-file or --token-keys")
      }
      return nil
    }
    if keys != nil, arguments.value("token-audience") == nil {
      throw Failure.usage(
        "--token-keys needs --token-audience: the keys may sign the tokens of other apps, too")
    }
    var tokens = TokenOptions()
    tokens.secret = try secretFile.map { try secret(in: $0, byteMin: 32) }
    if let keys, DatabaseServer.isURL(keys) {
      tokens.keySetURL = keys
    } else {
      tokens.keySetFile = keys
    }
    tokens.issuer = arguments.value("token-issuer")
    tokens.audience = arguments.value("token-audience")
    return tokens
  }

  private func secret(in file: String, byteMin: Int) throws -> String {
    let input = try InputFile(file)
    var bytes = [UInt8](repeating: 0, count: 4096)
    let count = try bytes.withUnsafeMutableBytes { try input.read(into: $0) }
    let line = bytes[..<count].prefix { $0 != UInt8(ascii: "\n") && $0 != UInt8(ascii: "\r") }
    guard let secret = String(validating: line, as: UTF8.self), secret.utf8.count >= byteMin else {
      throw Failure(
        .badInput, "\(file) does not begin with a line of at least \(byteMin) bytes of UTF-8")
    }
    return secret
  }

  // MARK: Limits and the viewer

  private func addLimits(to options: inout DatabaseServerOptions) throws {
    if let count = try arguments.integer("sessions", in: 1...1_000_000) {
      options.sessionLimit = count
      options.connectionLimit = max(options.connectionLimit, count)
    }
    options.connectionLimitByAddress = try arguments.integer("per-address", in: 1...1_000_000)
    if let header = arguments.value("trust-proxy") {
      guard DatabaseServer.isHeaderName(header) else {
        throw Failure.usage("--trust-proxy: \(Failure.quoted(header)) is no header field")
      }
      guard header.lowercased() != "forwarded" else {
        throw Failure.usage(
          "--trust-proxy: Forwarded has a form of its own, which is not read",
          hint: "have the proxy send X-Forwarded-For")
      }
      options.trustedProxyHeader = header
    }
    options.addressSessionLimit = try arguments.integer("address-sessions", in: 1...1_000_000)
    if let count = try arguments.integer("session-memory", in: 1...1 << 20) {
      options.sessionsByteLimit = count << 20
    }
    if let count = try arguments.integer("read-limit", in: 1...1 << 20) {
      options.readByteLimit = count << 20
    }
    options.messageRateLimit = try arguments.integer("rate", in: 1...1_000_000)
    if arguments.has("viewer"), arguments.has("no-viewer") {
      throw Failure.usage("--viewer contradicts --no-viewer")
    }
    if arguments.has("viewer") { options.viewer = true }
    if arguments.has("no-viewer") { options.viewer = false }
  }

  // MARK: The log

  private func addLog(to options: inout DatabaseServerOptions, _ log: ServeLog) {
    options.errorLog = { log.note(.error, $0) }
    if arguments.has("quiet") { return }
    options.accessLog = { log.note($0) }
  }
}

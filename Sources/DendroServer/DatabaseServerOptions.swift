import DendroPlatform
public import DendroRules

/// How a server behaves.
public struct DatabaseServerOptions: Sendable {
  /// The addresses to listen at: numeric addresses, or `localhost`, which stands for `127.0.0.1` and `::1`. By default
  /// `127.0.0.1`, which only this machine reaches.
  public var hosts = ["127.0.0.1"]
  /// The first of ``hosts``. Setting it makes it the only one.
  public var host: String {
    get { hosts.first ?? "" }
    set { hosts = [newValue] }
  }
  /// The port to listen at, the same at every address; 0, the default, lets the system choose one.
  public var port: UInt16 = 0
  /// The certificate with which the server speaks TLS, to all of its clients. By default, nil, it speaks none.
  public var tls: TLSOptions?
  /// The one name under which the database is served. By default every name reaches it.
  public var namespace: String?
  /// Who may read and write what, where no rules say it. By default, nil, only administrators if there is a ``secret``. Without
  /// one, everybody may do everything at a loopback address; at another one, or with ``tokens``, the server does not start
  /// unless there are ``rules`` or a ``rulesFile``: then only administrators may do what rules do not decide.
  public var authorizer: (any Authorizer)?
  /// Security rules for all databases of the server. By default, nil, each database has its own, which administrators put under
  /// `/.settings/rules.json`, or none. They decide about all clients but administrators, in place of an ``authorizer`` that
  /// yields to them, as those do that come with the server, but for ``LockedAuthorizer``.
  public var rules: Rules?
  /// The path of a file with security rules, in place of ``rules``. The server looks once a second whether it has changed. While
  /// it is broken, the rules before stay in force; from the start, only administrators may read and write then. The ``errorLog``
  /// gets the reason with line and column.
  public var rulesFile: String?
  /// The secret of administrators, as a bearer token or as `auth`. Without one, the default, no client is an
  /// administrator but those of ``trustsUnsignedTokens``.
  public var secret: String?
  /// Which signed tokens say who a user is. By default none.
  public var tokens: TokenOptions?
  /// Whether the server believes every credential, as an emulator does: each bearer is an administrator, and ID
  /// tokens need no signature and do not expire. It has no effect with ``secret`` or ``tokens``. By default, nil,
  /// only if the server listens at a loopback address; elsewhere credentials are refused then.
  public var trustsUnsignedTokens: Bool?
  /// Further names under which clients reach the server, without a port: `db.example.com`. With an ``OpenAuthorizer``, or if
  /// credentials are believed without a proof, requests with other names in their header field Host get
  /// status 403: a page of a stranger could let its own name lead to the server. Always allowed are addresses, names
  /// without a dot, names that end in `.localhost`, `host.docker.internal`, `host.containers.internal`, and the name of the
  /// machine, also with `.local`.
  public var hostNames: [String] = []
  /// The origins of pages that may ask a server of that kind, as `https://app.example.com` or `capacitor://localhost`, or
  /// `*` for all. Always allowed are the server's own pages and those of this machine. Other servers answer the pages of all origins.
  public var origins: [String] = []
  /// The largest body of a request, in bytes. By default 256 MiB.
  public var bodyByteLimit = 256 << 20
  /// What the bodies of all requests that have no answer yet may take together, in bytes, the first 16 KiB of each
  /// apart; a request that would take more is refused with status 503. By default 1 GiB.
  public var bodiesByteLimit = 1 << 30
  /// What of that the requests of one address may take. By default, nil, a half.
  public var bodiesByteLimitByAddress: Int?
  /// The most that one reading, listen or stream may show, in bytes of keys and values. Beyond that it is refused, with status
  /// 400 or as `too_big`; an answer 412 then has no value. By default 256 MiB.
  public var readByteLimit = 256 << 20
  /// The largest message of a session, in bytes. By default 32 MiB.
  public var messageByteLimit = 32 << 20
  /// The most sessions at a time, each a WebSocket or a client of long polling. By default 10,000. Beyond that, a newcomer
  /// takes the place of a client that has asked for nothing yet, or of one that has not signed in and whose address has
  /// more sessions than its own; a user who signs in takes that of any client that has not. Others are refused with
  /// status 503, or closed if they ask for something without having signed in.
  public var sessionLimit = 10_000
  /// The most sessions at a time of one client's address, or of all that begin with the same 64 bits of IPv6. By default,
  /// nil, a quarter of ``sessionLimit``, and no limit for addresses of this machine, from which a proxy may come.
  public var addressSessionLimit: Int?
  /// How many messages of one session are handled in a second; it is not read from for the rest of it. By
  /// default, nil, as many as it sends. Requests of REST need no such limit: a client waits for each answer.
  public var messageRateLimit: Int?
  /// What one session may have in memory, in bytes: what waits for it to be read, with what it listens to, beyond which it is
  /// closed; and what it has registered for its end, beyond which that is refused. By default 64 MiB, for each of the two.
  public var sessionByteLimit = 64 << 20
  /// What all sessions together may have in memory, in bytes: messages that are not whole or not handled, what waits to be
  /// read, listens, and what is registered for the end of sessions. Beyond that those that have most are closed, first of
  /// clients that have not signed in. By default 1 GiB.
  public var sessionsByteLimit = 1 << 30
  /// Whether `/` is the data viewer. By default, nil, only if the server listens at a loopback address.
  public var viewer: Bool?
  /// The most connections at a time, WebSockets apart; a client of long polling needs two. By default 10,000; each needs
  /// a file descriptor, or three with ``tls``, and a process that may have few of them gets fewer.
  public var connectionLimit = 10_000
  /// The most connections of one address at a time, WebSockets apart, so that one client leaves room for others; of IPv6, of one
  /// network with 64 bits. By default, nil, a quarter of ``connectionLimit``. With ``trustedProxyHeader`` it is the most
  /// requests that have no answer yet.
  public var connectionLimitByAddress: Int?
  /// The header field by which a proxy in front of the server says where a client is, such as `X-Forwarded-For`: an address,
  /// or several with commas between them, of which the last is the proxy's own word. Limits by address and ``accessLog`` go by
  /// it. By default, nil, they go by the other end of the connection. Only for servers that clients reach by the proxy
  /// alone: a client can send the field too.
  public var trustedProxyHeader: String?
  /// What the head of a request may take, from the connection's beginning or from the end of the request line, before the
  /// connection is closed. By default 10 seconds.
  public var headTimeout: Duration = .seconds(10)
  /// How slowly a body may come: one of which less than this comes in a second, in bytes on the average of 30 seconds,
  /// is given up with status 408. By default 1 KiB.
  public var bodyRateMin = 1 << 10
  /// After how long without a byte in either direction a connection is closed, unless the server owes it an
  /// answer. By default 60 seconds.
  public var idleTimeout: Duration = .seconds(60)
  /// After how long without an event a stream gets a `keep-alive`. By default 30 seconds.
  public var keepAliveInterval: Duration = .seconds(30)
  /// What waits for one slow reader of events, in bytes, before its changes are merged: it gets the whole value
  /// once it reads again. By default 1 MiB.
  public var backlogByteLimit = 1 << 20
  /// Called after each request, on the server's threads: it has to be quick.
  public var accessLog: (@Sendable (AccessRecord) -> Void)?
  /// Called with a sentence if something fails that no request has asked for. By default, nil, it is a line on
  /// standard error.
  public var errorLog: (@Sendable (String) -> Void)?

  /// Over which ``bodyRateMin`` is measured.
  package var bodyRateInterval: Duration = .seconds(30)
  /// After how long a poll that has nothing to bring is answered.
  package var pollHold: Duration = .seconds(25)
  /// After how long without a poll a session of long polling ends.
  package var pollSilence: Duration = .seconds(60)
  /// After how long a session of long polling ends that has not polled yet.
  package var firstPollTimeout: Duration = .seconds(10)
  /// After how long a session ends whose client has not signed in and can do nothing else.
  package var signInTimeout: Duration = .seconds(60)
  /// How long a message may take to come. A long one has more: a second for each 4 KiB.
  package var messageTimeout: Duration = .seconds(60)
  /// After how long a WebSocket is closed whose client takes no byte of what waits for it.
  package var readTimeout: Duration = .seconds(30)
  /// What a fetch of ``TokenOptions/keySetURL`` may take.
  package var keySetTimeout: Duration = .seconds(10)
  /// After how many seconds at most a listen ends whose right was read from data that have changed.
  package var verdictInterval = 10
  /// The time in seconds since 1970, for tokens.
  package var clock: @Sendable () -> Int64 = systemSeconds

  /// The defaults.
  public init() {}
}

/// One request and what became of it.
public struct AccessRecord: Sendable {
  /// When the request's head came, in milliseconds since 1970.
  public let time: Int64
  /// The address and the port that the request came from: `127.0.0.1:50312` or `[::1]:50312`. Behind a proxy they are
  /// the proxy's, or with ``DatabaseServerOptions/trustedProxyHeader`` what that says. Empty if the system does not say them.
  public let client: String
  /// The name of the database that the request is for, whether there is one or not; nil if it is for none, as
  /// `/.status.json` is.
  public let namespace: String?
  /// `GET`, `PUT`, …
  public let method: String
  /// The path and the query, without credentials.
  public let target: String
  /// The HTTP status; 0 if the client left before the answer, or the server ended before the whole request had come;
  /// 499 if the server has noticed that the client had left before it began work that takes long.
  public let status: Int
  /// From the request's head to the end of the answer.
  public let duration: Duration
}

extension DatabaseServerOptions {
  /// Whether only this machine reaches the server: if it does not listen at any other address.
  var isLoopback: Bool { hosts.allSatisfy(SocketAddress.isLoopback) }

  /// The error log, or standard error if there is none.
  var report: @Sendable (String) -> Void {
    errorLog ?? { sentence in
      let line = Array("dendro: \(sentence)\n".utf8)
      _ = write(2, line, line.count)
    }
  }
}

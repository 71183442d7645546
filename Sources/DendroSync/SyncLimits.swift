/// How long a client waits for its server, and how much it takes of it.
struct SyncLimits: Sendable {
  /// How long a connection may take until the server has greeted.
  var connectTimeout = Duration.seconds(30)
  /// After so much silence the client says that it is there, and asks whether the server is.
  var keepAliveInterval = Duration.seconds(45)
  /// How long a server may say nothing at all after that.
  var answerTimeout = Duration.seconds(60)
  /// How often the client asks for the number of the last write that it has received.
  var askInterval = Duration.seconds(300)
  /// A server that sends its client elsewhere more often than this, while no connection lasts, is not obeyed any more.
  var redirectCountMax = 5
  /// The most bytes of one message of a server, which sends no more than 256 MiB of data at once.
  var messageByteLimit = 320 << 20
}

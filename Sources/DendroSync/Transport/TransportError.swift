import DendroPlatform

/// Why there is no connection.
enum TransportError: Error, CustomStringConvertible {
  case system(String, Int32)
  case unknownHost(String, String)
  case timedOut
  /// The server says nothing any more.
  case silent
  /// This side does not want it any more.
  case interrupted
  case certificate(String)
  case refused(String)
  case ended

  /// The error of the system's last call.
  static func last(_ call: String) -> TransportError { .system(call, errno) }

  var description: String {
    switch self {
    case .system(let call, let number): "\(call): \(String(cString: strerror(number)))"
    case .unknownHost(let host, let reason): "the host \(host) is not known: \(reason)"
    case .timedOut: "it took too long"
    case .silent: "the server does not answer"
    case .interrupted: "it was interrupted"
    case .certificate(let reason): "no secure connection: \(reason)"
    case .refused(let reason): reason
    case .ended: "the server has closed it"
    }
  }
}

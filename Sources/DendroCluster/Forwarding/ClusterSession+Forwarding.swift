import DendroStorage
import DendroTree

extension ClusterSession {
  // MARK: Of a follower

  /// Leaves writes for the leader of an epoch. A row that is there already stays as it is, unless it was left for the
  /// leader of an earlier epoch, who has not taken it.
  func request(
    _ row: ArraySlice<ForwardedWrite>, of client: [UInt8], epoch: Int64
  ) throws(ClusterError) {
    guard let first = row.first else { return }
    _ = try execute(
      """
      INSERT INTO dendro.request (namespace, client, number, epoch, count, body)
      VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (namespace, client, number)
      DO UPDATE SET epoch = $4, count = $5, body = $6 WHERE dendro.request.epoch < $4
      """,
      [
        namespace, .bytes(client), .integer(Int64(first.number)), .integer(epoch),
        .integer(Int64(row.count)), .bytes(RequestBody.encode(row)),
      ])
  }

  /// What the leader of an epoch has said of this opening's writes.
  func answers(
    to client: [UInt8], epoch: Int64
  ) throws(ClusterError) -> [Forwarding.Answer] {
    let rows = try execute(
      """
      SELECT number, kind, first, second, body, lsn FROM dendro.answer
      WHERE namespace = $1 AND client = $2 AND epoch = $3 ORDER BY number LIMIT 200
      """, [namespace, .bytes(client), .integer(epoch)])
    var answers: [Forwarding.Answer] = []
    do throws(PostgresError) {
      for row in 0..<rows.count {
        guard let number = UInt64(exactly: try rows.integer(row, 0)),
          let lsn = UInt64(exactly: try rows.integer(row, 5))
        else { continue }
        answers.append(
          Forwarding.Answer(
            number: number,
            answer: ForwardedAnswer(
              kind: try rows.integer(row, 1), first: try rows.integer(row, 2),
              second: try rows.integer(row, 3), body: try rows.bytes(row, 4)),
            lsn: LogSequenceNumber(lsn)))
      }
    } catch {
      throw .postgres(error)
    }
    return answers
  }

  /// Removes answers that were noted.
  func forget(
    _ answers: [Forwarding.Answer], to client: [UInt8], epoch: Int64
  ) throws(ClusterError) {
    if answers.isEmpty { return }
    let places = answers.indices.map { "$\($0 + 4)" }.joined(separator: ", ")
    _ = try execute(
      """
      DELETE FROM dendro.answer
      WHERE namespace = $1 AND client = $2 AND epoch = $3 AND number IN (\(places))
      """,
      [namespace, .bytes(client), .integer(epoch)]
        + answers.map { .integer(Int64($0.number)) })
  }

  // MARK: Of the leader

  /// Removes what was left for leaders of earlier epochs.
  func forgetRequests(before epoch: Int64) throws(ClusterError) {
    for table in ["request", "answer"] {
      _ = try execute(
        "DELETE FROM dendro.\(table) WHERE namespace = $1 AND epoch < $2",
        [namespace, .integer(epoch)])
    }
  }

  /// The first row of each server, without its body.
  func requests(epoch: Int64) throws(ClusterError) -> [Request] {
    let rows = try execute(
      """
      SELECT r.client, r.number, r.count FROM dendro.server s CROSS JOIN LATERAL (
        SELECT client, number, count FROM dendro.request
        WHERE namespace = $1 AND client = s.opening AND epoch = $2
        ORDER BY number LIMIT 1) r
      WHERE s.namespace = $1
      """, [namespace, .integer(epoch)])
    var requests: [Request] = []
    do throws(PostgresError) {
      for row in 0..<rows.count {
        let (number, count) = (try rows.integer(row, 1), try rows.integer(row, 2))
        // No server has made so many writes.
        guard (1...(1 << 62)).contains(number), (1...(1 << 20)).contains(count) else { continue }
        requests.append(
          Request(client: try rows.bytes(row, 0), number: UInt64(number), count: count))
      }
    } catch {
      throw .postgres(error)
    }
    return requests
  }

  /// What a row holds; nil if it is not there any more.
  func body(of row: Request, epoch: Int64) throws(ClusterError) -> [UInt8]? {
    let rows = try execute(
      """
      SELECT body FROM dendro.request
      WHERE namespace = $1 AND client = $2 AND number = $3 AND epoch = $4
      """,
      [namespace, .bytes(row.client), .integer(Int64(row.number)), .integer(epoch)])
    if rows.count == 0 { return nil }
    do throws(PostgresError) {
      return try rows.bytes(0, 0)
    } catch {
      throw .postgres(error)
    }
  }

  /// Removes a row that the engine has got in an epoch, and not one that was left for the next leader since.
  func removeRequest(_ row: Request, epoch: Int64) throws(ClusterError) {
    _ = try execute(
      """
      DELETE FROM dendro.request
      WHERE namespace = $1 AND client = $2 AND number = $3 AND epoch = $4
      """,
      [namespace, .bytes(row.client), .integer(Int64(row.number)), .integer(epoch)])
  }

  /// Says what has become of writes that have no number.
  func answer(_ answers: ArraySlice<Requests.Answer>, epoch: Int64) throws(ClusterError) {
    var values: [PostgresValue] = [namespace, .integer(epoch)]
    var rows: [String] = []
    var keys: Set<WriteOrigin> = []
    for answer in answers {
      // A statement cannot say two things of one.
      let key = WriteOrigin(client: answer.client, number: answer.number)
      guard keys.insert(key).inserted else { continue }
      let fields = answer.answer.fields
      let first = values.count + 1
      values += [
        .bytes(answer.client), .integer(Int64(answer.number)),
        .integer(Int64(answer.lsn.rawValue)), .integer(fields.kind), .integer(fields.first),
        .integer(fields.second), .bytes(fields.body),
      ]
      let places = (2..<7).map { "$\(first + $0)" }.joined(separator: ", ")
      rows.append("($1, $\(first), $\(first + 1), $2, \(places))")
    }
    if rows.isEmpty { return }
    _ = try execute(
      """
      INSERT INTO dendro.answer
        (namespace, client, number, epoch, lsn, kind, first, second, body)
      VALUES \(rows.joined(separator: ", ")) ON CONFLICT (namespace, client, number)
      DO UPDATE SET epoch = excluded.epoch, lsn = excluded.lsn, kind = excluded.kind,
        first = excluded.first, second = excluded.second, body = excluded.body
      WHERE dendro.answer.epoch < excluded.epoch
      """, values)
  }
}

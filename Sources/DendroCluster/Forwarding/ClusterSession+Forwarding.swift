import DendroStorage

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

  /// What the leader of an epoch has said of this opening's writes. Each answer is given once.
  func answers(
    to client: [UInt8], epoch: Int64
  ) throws(ClusterError) -> [Forwarding.Answer] {
    let rows = try execute(
      """
      SELECT number, kind, first, second, body, lsn FROM dendro.answer
      WHERE namespace = $1 AND client = $2 AND epoch = $3 ORDER BY number LIMIT 1000
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
    if let last = answers.last {
      _ = try execute(
        """
        DELETE FROM dendro.answer
        WHERE namespace = $1 AND client = $2 AND epoch <= $3 AND number <= $4
        """, [namespace, .bytes(client), .integer(epoch), .integer(Int64(last.number))])
    }
    return answers
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

  func requests(epoch: Int64) throws(ClusterError) -> [Request] {
    let rows = try execute(
      """
      SELECT client, number, count, body FROM dendro.request
      WHERE namespace = $1 AND epoch = $2 ORDER BY client, number LIMIT 16
      """, [namespace, .integer(epoch)])
    var requests: [Request] = []
    do throws(PostgresError) {
      for row in 0..<rows.count {
        let (number, count) = (try rows.integer(row, 1), try rows.integer(row, 2))
        // No server has made so many writes.
        guard (1...(1 << 62)).contains(number), (1...(1 << 20)).contains(count) else { continue }
        requests.append(
          Request(
            client: try rows.bytes(row, 0), number: UInt64(number), count: count,
            body: try rows.bytes(row, 3)))
      }
    } catch {
      throw .postgres(error)
    }
    return requests
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

  func answer(_ answer: Requests.Answer, epoch: Int64) throws(ClusterError) {
    let fields = answer.answer.fields
    _ = try execute(
      """
      INSERT INTO dendro.answer
        (namespace, client, number, epoch, lsn, kind, first, second, body)
      VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (namespace, client, number)
      DO UPDATE SET epoch = $4, lsn = $5, kind = $6, first = $7, second = $8, body = $9
      WHERE dendro.answer.epoch < $4
      """,
      [
        namespace, .bytes(answer.client), .integer(Int64(answer.number)), .integer(epoch),
        .integer(Int64(answer.lsn.rawValue)), .integer(fields.kind), .integer(fields.first),
        .integer(fields.second), .bytes(fields.body),
      ])
  }
}

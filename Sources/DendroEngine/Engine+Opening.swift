package import DendroStorage

extension Engine {
  /// Opens or creates the database in the directory at `path`, replaying what the newest checkpoint
  /// does not hold.
  ///
  /// If an engine of this process that was released without `close()` still holds the directory, this
  /// waits until that is closed.
  ///
  /// - Parameters:
  ///   - path: absolute, or relative to the working directory; created with mode 0700 if missing,
  ///     its parent must exist.
  ///   - sharing: the log that several engines share, of which the directory has a copy; nil for a database that
  ///     decides alone.
  ///   - progress: called on the calling thread, at most once a mebibyte.
  ///
  /// - Throws: `.storage` if the files cannot be used (damaged, locked, refused by the system);
  ///   nothing was changed then.
  /// - Complexity: O(log since the checkpoint), with `EngineOptions.Loading.whole` also of its size. Waits for the disk on the calling thread.
  package static func open(
    at path: String, options: EngineOptions = EngineOptions(), environment: Environment = .system,
    mode: Mode = .readWrite, sharing: Sharing? = nil,
    progress: (@Sendable (RecoveryProgress) -> Void)? = nil
  ) throws(EngineError) -> Engine {
    let options = sharing?.applied(to: options) ?? options
    do throws(StorageError) {
      let started = ContinuousClock.now
      let path = try WorkingDirectory.absolute(path)
      let directory = try EngineClosings.retry { () throws(StorageError) in
        mode == .readOnly
          ? try DatabaseDirectory.openMended(path, environment: environment)
          : try DatabaseDirectory.open(path, environment: environment, mode: mode.ofDirectory)
      }
      do throws(StorageError) {
        let lease = try directory.lease()
        defer { lease?.end() }
        var recovery = Recovery(
          directory: directory, readsAll: options.loading == .whole, progress: progress)
        var recovered = try recovery.run()
        if mode == .readOnly || mode == .following {
          let position =
            mode == .following ? try directory.publishPosition(recovered.lastLSN) : nil
          recovered.report.elapsed = ContinuousClock.now - started
          let engine = Engine(
            readOnly: recovered, directory: directory, path: path, options: options,
            environment: environment, position: position)
          try engine.startFollowing()
          return engine
        }
        if let found = recovered.databaseID, let sharing, found != sharing.databaseID {
          throw .ownershipLost(path: path, reason: "another database stands there")
        }
        let log = try recovered.openLog(directory, options, sharing?.databaseID)
        recovered.report.elapsed = ContinuousClock.now - started
        let engine = Engine(
          writing: recovered, log: log, directory: directory, path: path, options: options,
          environment: environment, sharing: sharing)
        try engine.start()
        engine.pipeline.instrumentation.record(events: engine.report.events, metrics: [])
        return engine
      } catch {
        directory.close()
        throw error
      }
    } catch {
      throw .storage(error)
    }
  }

  /// A tree that lives only as long as this object. If the system has no thread for it, the engine is
  /// closed from the beginning, and a log event says so.
  package static func inMemory(
    options: EngineOptions = EngineOptions(), environment: Environment = .system
  ) -> Engine {
    let engine = Engine(inMemory: options, environment: environment)
    do {
      try engine.start()
    } catch {
      engine.pipeline.instrumentation.record(
        LogEvent(.error, "a database in memory cannot run", ["error": "\(error)"]))
    }
    return engine
  }

  /// A tree that takes no writes, and lives as long as this object.
  package static func showing(
    _ state: HistoryState, options: EngineOptions = EngineOptions(),
    environment: Environment = .system
  ) -> Engine {
    Engine(inMemory: options, showing: state, environment: environment)
  }

  package enum Mode: Hashable, Sendable {
    /// Created if missing.
    case readWrite
    /// Must exist already.
    case readWriteExisting
    /// Changes nothing, not even a torn tail; works beside a writer.
    case readOnly
    /// As `readOnly`, and the head follows what a writer in another process writes.
    case following

    fileprivate var ofDirectory: DatabaseDirectory.Mode {
      switch self {
      case .readWrite: .readWrite(create: true)
      case .readWriteExisting: .readWrite(create: false)
      case .readOnly: .readOnly
      case .following: .following
      }
    }
  }

  private func startFollowing() throws(StorageError) {
    do throws(SystemError) {
      try logFollower?.start()
    } catch {
      throw .io(operation: "start a thread", path: path ?? "memory", offset: nil, error: error)
    }
  }

  func start() throws(StorageError) {
    guard let executor = pipeline.executor else { return }
    do {
      try executor.start { [groupCommit = pipeline.groupCommit] in groupCommit.runTurn() }
    } catch {
      pipeline.giveUp()
      throw .io(operation: "start a thread", path: path ?? "memory", offset: nil, error: error)
    }
  }
}

extension Engine {
  /// Whether the database in a directory may have a second root, as its newest segment says; false if that cannot be read.
  ///
  /// - Complexity: O(1): two directory calls and the header of a segment.
  package static func mayHaveSecondRoot(at path: String) -> Bool {
    guard
      let directory = try? DatabaseDirectory.open(path, environment: .system, mode: .readOnly)
    else { return false }
    defer { directory.close() }
    guard let newest = try? directory.contents().segments.last,
      let header = try? SegmentHeader.read(newest, in: directory)
    else { return false }
    return header.format.hasSecondRoot
  }
}

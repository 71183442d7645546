extension Command {
  static let cluster = Command(
    name: "cluster", summary: "show, mend and steer servers that share databases over PostgreSQL",
    discussion: """
      Each ACTION asks the PostgreSQL at ADDRESS over which 'dendro serve --cluster ADDRESS' has servers share
      databases.

      status ADDRESS shows for each namespace how often the leading has changed hands, the last write, what the log
      has, and the servers, with the writes that each has still to take. A server says about once a second what
      it has. One that has not within three seconds is shown as silent, also one that was killed. If none is heard, the
      other hosts of ADDRESS are looked at as well. Nothing is written, and no table is made.

      restore DIRECTORY ADDRESS is for a PostgreSQL that was set back: restored from a backup, or failed over to a
      standby that lacked writes. DIRECTORY is that of a server for one namespace; its log goes on behind the end
      of PostgreSQL's log, and what PostgreSQL lacks is appended there again. No server may use DIRECTORY, and none may
      lead the namespace. If PostgreSQL has other writes instead, nothing is done. --dry-run only says which writes are
      in question. Both say which later ones DIRECTORY has lost as well, as far as it knows of them.

      accept-loss DIRECTORY ADDRESS gives these writes up: it moves the data of DIRECTORY aside, and a server that
      is started on DIRECTORY reads all from PostgreSQL. It says where the writes are now.

      verify NAMESPACE ADDRESS has all servers of a namespace that are there hash what they have behind one write, also
      while they take writes, and compares: their data as 'dendro hash' does, and what they keep beside the data.
      A server answers within about three seconds, and the time that hashing takes.

      drain SERVER ADDRESS has the server at that address leave the leading of all its namespaces to others, and lead no
      more until 'drain --end SERVER', unless all that are there are drained; also after a restart. It still takes
      clients. SERVER is an address as status shows it, with or without http://. A name of 'status --json' stands for a
      server in one namespace alone.

      move NAMESPACE SERVER ADDRESS has one server lead a namespace, at once and, after it was away, again within a minute
      or so; status shows it. 'move --end NAMESPACE ADDRESS' leaves that to the servers again. By themselves servers
      spread the namespaces: chance says which server is to lead each one, and a server that leads at least two
      namespaces more than that server hands it over within a minute or so.

      ADDRESS is as libpq reads it: a postgresql:// URL, or a line of keys and values. If it is left out, it is
      that of the environment variable DENDRO_CLUSTER, which other users of the machine do not see. A
      password rather stands in a file that PGPASSFILE names, or in a service file.
      """,
    parameters: [
      Parameter(
        name: "ACTION", summary: "status, restore, accept-loss, verify, drain or move"),
      Parameter(
        name: "OBJECT",
        summary:
          "DIRECTORY of a server and one namespace for restore and accept-loss, NAMESPACE for verify and move, SERVER for drain",
        isOptional: true),
      Parameter(name: "SERVER", summary: "for move", isOptional: true),
      Parameter(
        name: "ADDRESS", summary: "of PostgreSQL; DENDRO_CLUSTER if left out", isOptional: true),
    ],
    options: [
      Command.Option(
        name: "dry-run", short: "n",
        summary: "of restore and accept-loss: only say what would be done"),
      Command.Option(
        name: "end",
        summary: "of drain: let the server lead again; of move: let the servers choose who leads"),
      .json,
    ],
    examples: [
      Example(
        line: "dendro cluster status postgresql://dendro@db1,db2/dendro",
        summary: "who leads, and who is behind?"),
      Example(
        line: "dendro cluster restore --dry-run /var/lib/dendro/shop",
        summary: "what has PostgreSQL lost?"),
      Example(
        line: "dendro cluster drain a.example:9000", summary: "before work on that machine"),
    ],
    run: { try ClusterAction.run($0) })
}

/// Certificates that nobody vouches for, each with its key, for `localhost` and the next hundred years.
package struct TestCertificate: Sendable {
  package let certificate: String
  package let key: String

  /// Of the subject `/CN=one`.
  package static let one = TestCertificate(
    certificate: """
      -----BEGIN CERTIFICATE-----
      MIIBozCCAUigAwIBAgIUdu1qyJ49xqrrJOzqX94lHpKfejowCgYIKoZIzj0EAwIw
      DjEMMAoGA1UEAwwDb25lMCAXDTI2MTEyNjA4MTQyNFoYDzIxMjYxMTAyMDgxNDI0
      WjAOMQwwCgYDVQQDDANvbmUwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAT3AS2n
      7+bk293tW2sHnIkN1GkwRaaxuLMUkeSUh1nXsKt6kbEYSrDREoGjAt5LzZPewYP2
      dfv4UnebAtTJklSMo4GBMH8wHQYDVR0OBBYEFBr0zEk+RRwSS2IM30NrQZa3gdBa
      MB8GA1UdIwQYMBaAFBr0zEk+RRwSS2IM30NrQZa3gdBaMA8GA1UdEwEB/wQFMAMB
      Af8wLAYDVR0RBCUwI4IJbG9jYWxob3N0hwR/AAABhxAAAAAAAAAAAAAAAAAAAAAB
      MAoGCCqGSM49BAMCA0kAMEYCIQDIoLiw/Riv0hkhvJ8l6YTr1X1AaFgqYe85MtWr
      7IGBwgIhAOfZICKAZ5b7ntdeq6dTofutukzF+VEbNxf+2l4mvg8q
      -----END CERTIFICATE-----
      """,
    key: """
      -----BEGIN PRIVATE KEY-----
      MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgCh8aA7WnE9crOTiY
      yRdKB96rDgmVQob0gR1WPAjB2RehRANCAAT3AS2n7+bk293tW2sHnIkN1GkwRaax
      uLMUkeSUh1nXsKt6kbEYSrDREoGjAt5LzZPewYP2dfv4UnebAtTJklSM
      -----END PRIVATE KEY-----
      """)

  /// Of the subject `/CN=two`.
  package static let two = TestCertificate(
    certificate: """
      -----BEGIN CERTIFICATE-----
      MIIBozCCAUigAwIBAgIUOHA72iQttLIrV5N3iTwxaZCaE8IwCgYIKoZIzj0EAwIw
      DjEMMAoGA1UEAwwDdHdvMCAXDTI2MTEyNjA4MTQyNFoYDzIxMjYxMTAyMDgxNDI0
      WjAOMQwwCgYDVQQDDAN0d28wWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAQRuoHP
      +qHIppWqi61twFMhI6gRO+/CGP9bMAo2AFgS119SYYKdWV/PVJbYAhG+4iOZYEBy
      nUriZ1G6P+zT9nLuo4GBMH8wHQYDVR0OBBYEFOSHmiM9bXL2On7C/2L1akYLKBpA
      MB8GA1UdIwQYMBaAFOSHmiM9bXL2On7C/2L1akYLKBpAMA8GA1UdEwEB/wQFMAMB
      Af8wLAYDVR0RBCUwI4IJbG9jYWxob3N0hwR/AAABhxAAAAAAAAAAAAAAAAAAAAAB
      MAoGCCqGSM49BAMCA0kAMEYCIQDnT9YkgevkUFIBNolJedKJDxADSic586hNRrtz
      ki+HqAIhAOv5/r3UZqiYknTWZQnF0+F39IcEqF+/jvzI28khCshz
      -----END CERTIFICATE-----
      """,
    key: """
      -----BEGIN PRIVATE KEY-----
      MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgAPh9JQQTHD5gEkmk
      GpIJH67vkI3JNNGow6ngnGjJrImhRANCAAQRuoHP+qHIppWqi61twFMhI6gRO+/C
      GP9bMAo2AFgS119SYYKdWV/PVJbYAhG+4iOZYEBynUriZ1G6P+zT9nLu
      -----END PRIVATE KEY-----
      """)

  /// Of a key of 512 bits, which no TLS takes.
  package static let weak = TestCertificate(
    certificate: """
      -----BEGIN CERTIFICATE-----
      MIIBdzCCASGgAwIBAgIUF3mJPAL90ZBFRzklwVgZNLBSghcwDQYJKoZIhvcNAQEL
      BQAwDzENMAsGA1UEAwwEd2VhazAgFw0yNjEyMDEwNzE2NDlaGA8yMTI2MTEwNzA3
      MTY0OVowDzENMAsGA1UEAwwEd2VhazBcMA0GCSqGSIb3DQEBAQUAA0sAMEgCQQDB
      NMBnBBxYwZlXYRngHhiLvD5N2j4UnsuJdz5orm1ukNpXNA4lLNwznvpM2J873V43
      TqcQpRGvvv97eYW62YAbAgMBAAGjUzBRMB0GA1UdDgQWBBRhgBcZeNutFo7GAgJj
      c8MQnrEwPjAfBgNVHSMEGDAWgBRhgBcZeNutFo7GAgJjc8MQnrEwPjAPBgNVHRMB
      Af8EBTADAQH/MA0GCSqGSIb3DQEBCwUAA0EARVLYLHNucNPeg3sprroIMo7KCz1b
      3QNnIsYVSELUSgF4pLehJmqQxWl0v2Q4utZG56JshfCF5S4Zy2fSPmF5Lw==
      -----END CERTIFICATE-----
      """,
    key: """
      -----BEGIN PRIVATE KEY-----
      MIIBVAIBADANBgkqhkiG9w0BAQEFAASCAT4wggE6AgEAAkEAwTTAZwQcWMGZV2EZ
      4B4Yi7w+Tdo+FJ7LiXc+aK5tbpDaVzQOJSzcM576TNifO91eN06nEKURr77/e3mF
      utmAGwIDAQABAkA8cNo33+tWQMpNsYy8te2L2UnMZRfCr6KQ0ILvkJGfYpn149UE
      K6Y9kvLCSldbzG93MuOD+o6gYSB/2ygjNxOxAiEA6jQnJe5Ix9OV12M8PBuqDOtt
      Z6cUGXJzPpsJ/Qe8ca0CIQDTL9balDt7BkrPyU6M2q1+2h9loq3UxA3iR03x9PpB
      5wIgVviRBRvsuRAQl9CJIMUhK/UNRq2b4CtJMpl+ZxFFYG0CIBM+hMGeSF1JkX+l
      xHapZq3sinfkfxqoUuuPu9aUkEl5AiEAmtDI5mK1VtkxJRsgdxTJrnLKo/hqymYP
      /WBANgiDclA=
      -----END PRIVATE KEY-----
      """)
}

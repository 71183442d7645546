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
}

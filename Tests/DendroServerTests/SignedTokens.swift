import Foundation

/// Tokens and keys that were made once, with openssl: of the claims `iss` https://issuer.example, `aud` app,
/// `sub` ada, `iat` and `auth_time` 1,700,000,000, and `exp` an hour later, apart from what the name says.
enum SignedTokens {
  static let issued: Int64 = 1_700_000_000
  static let secret = "0123456789abcdef0123456789abcdef"

  static let rs256 =
    """
    eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCIsImtpZCI6Im9uZSJ9.eyJpc3MiOiJodHRwczovL2lzc3Vlci5leGF\
    tcGxlIiwiYXVkIjoiYXBwIiwiaWF0IjoxNzAwMDAwMDAwLCJhdXRoX3RpbWUiOjE3MDAwMDAwMDAsImV4cCI6MTc\
    wMDAwMzYwMCwic3ViIjoiYWRhIiwiZmlyZWJhc2UiOnsiaWRlbnRpdGllcyI6eyJnb29nbGUuY29tIjpbIjEiXX1\
    9fQ.pZ7I2o4qASlxghruTHQfCxUS5lhENWexO56A9278lQm4GRupouZ3BllTlVg-wQhLKTVy5YnFeP7UnIRe3vvG\
    0IF4JfmXMGx8b8Td5pxCj4aZ2caTO1R8YDpK8c_Dnr8Gd-gYPeXdRKTVtPpyLN4o4SJ2zBM2TnUYPmzR0wbfm9oO\
    fg9frU3w8_MAmIphfJJGEw4Kqf0-5-lM1J4wynGQ_6tUjY-ThXqh0NF3ClOcZK8L7iIoXrc9CE6jZ-UOAFmBSaxy\
    egiJAqpZnZ0TFZzE354GKSKekmmKQ1wa2TpKm2zraDvPe3EtDj7XsPtL_NRFtDqseZn6NJxfIMRkXJu1Qg
    """
  static let rs256OfTwo =
    """
    eyJhbGciOiJSUzI1NiIsImtpZCI6InR3byJ9.eyJpc3MiOiJodHRwczovL2lzc3Vlci5leGFtcGxlIiwiYXVkIjo\
    iYXBwIiwiaWF0IjoxNzAwMDAwMDAwLCJhdXRoX3RpbWUiOjE3MDAwMDAwMDAsImV4cCI6MTcwMDAwMzYwMCwic3V\
    iIjoiYWRhIiwiZmlyZWJhc2UiOnsiaWRlbnRpdGllcyI6eyJnb29nbGUuY29tIjpbIjEiXX19fQ.wwnmnPAiCq4A\
    nmoS8ivC52oQJNiRI1sElgM2mVElvpqYhZIf32wkmSAY3iYVAQK1oGqr2fj8HG0XYsZq2N6Ff4YIL-_beGTph6Bg\
    OsKiQxiWqD3PJkr8gwhxBudWEm1KTKRqr87CPGTjavffGJ0x31qtnoI0VKnL6I3J967K0X3sCKVqd0zSgLCOeBIB\
    5shr9hxU7cm3Z0Tr5ZPfXd9ucbj7nITmdvKsTpyDVYiAk0MBFToyQ6Fvz2Jdv4G9S3QKH8lL0yKKNaRKcW5hsY9V\
    zIjaX8NOOfDMq0M3b_k8V6JQypjTfG5ZvC8P6S-wO1vScHiqJ-FHJSbVKhvY6qs8bA
    """
  static let rs256Unnamed =
    """
    eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJodHRwczovL2lzc3Vlci5leGFtcGxlIiwiYXVkIjoiYXBwIiwiaWF0Ijo\
    xNzAwMDAwMDAwLCJhdXRoX3RpbWUiOjE3MDAwMDAwMDAsImV4cCI6MTcwMDAwMzYwMCwic3ViIjoiYWRhIiwiZml\
    yZWJhc2UiOnsiaWRlbnRpdGllcyI6eyJnb29nbGUuY29tIjpbIjEiXX19fQ.XB2QyGo-if49zZIAjNvuGdbLseYo\
    0A2y3BtDYHoMR_Fh17xljv87dnzpQZcHLFvdl1DoZQ4N5OOTa1U54WlHXy4AWNfx144jxtlSIDTov7_myvEaW1MK\
    kP6V1ZHf12fF2NL7mLawOzcB8KIDfxY1vecUwxIMZeVHzCM2E_wbrqN9J4pR-tr9oUnySPmhCRVIYkrltXKlCB44\
    LTVoM8VEfHU1Q7vUlRvS-5txUH2SiYkunGKxa7XVYV268OqA4rtTGF0VR4eaRIclIeC-d-eszhQ8pRAOFosSYCUD\
    klGQ74pt5Lfdgv2TWf_GJVWpEaUC9Wy1OiZFMOfuoN-G7j_D2A
    """
  static let rs256OtherName =
    """
    eyJhbGciOiJSUzI1NiIsImtpZCI6InR3byJ9.eyJpc3MiOiJodHRwczovL2lzc3Vlci5leGFtcGxlIiwiYXVkIjo\
    iYXBwIiwiaWF0IjoxNzAwMDAwMDAwLCJhdXRoX3RpbWUiOjE3MDAwMDAwMDAsImV4cCI6MTcwMDAwMzYwMCwic3V\
    iIjoiYWRhIiwiZmlyZWJhc2UiOnsiaWRlbnRpdGllcyI6eyJnb29nbGUuY29tIjpbIjEiXX19fQ.htWXc5fGnoa_\
    21DvRiRgQCX9mlW_afqE-HFmLl-oXbtxAVerlpXdNy5qBY_FPYV43qZosYWjW-3QTLrUt_019sr2THCSWoKJMiGp\
    3H0yCSFj1wvZ6IfZLPB72-R5NpLQf8vC3FcrOYaZnQ97wAdLkj8Ye6sB7zy74RFQ-J9-TSVXvYZUi1DxbvAw_eZU\
    pHg5g2fd-14K-msGROeK5X3LFwlzh8QxVNc_P4F7NpDDzHCERiFYKDJAdG5s0LIygpKNEP-fdKSTo7ABZYPJqanz\
    uMLLsGJeWJp_n_zutfQkvIvxzldYphB54VJtDp1lHH1C7y9B3PNkW7PiJ44otq8Zow
    """
  static let rs256UnknownName =
    """
    eyJhbGciOiJSUzI1NiIsImtpZCI6InRocmVlIn0.eyJpc3MiOiJodHRwczovL2lzc3Vlci5leGFtcGxlIiwiYXVk\
    IjoiYXBwIiwiaWF0IjoxNzAwMDAwMDAwLCJhdXRoX3RpbWUiOjE3MDAwMDAwMDAsImV4cCI6MTcwMDAwMzYwMCwi\
    c3ViIjoiYWRhIiwiZmlyZWJhc2UiOnsiaWRlbnRpdGllcyI6eyJnb29nbGUuY29tIjpbIjEiXX19fQ.HDKD8bUdc\
    e9ZuG5g67zpY2M7B7yBnT8HOmmPDS7a491fa_A4Es8zL5QQ3NbudE0elPJakl26IkgWNBMweMy7iyaUeehG0PcEV\
    A3EQq5eE8aOrfMqe3LDc6dX_PVOXbgXObh_tf8BIW0_d2E8pCAXASPJw54ZYB02m3cJSNydeg6wpcQB-rAMccDTq\
    FGotf3M6HvIRlVTmSJf8FndVctotRBSWcZbLnLnwox7oGqDq_xyJNn1jBLdkOR8aCEmtnBByyVFnE3Q_Jxt3JEn-\
    rJR78-vFLFsWd-5SZmyOiWLMQWz2QiAnGPLFfq-RHzcnFPqAY1d5igtNGZfYOLnzhnNnw
    """
  static let rs256Critical =
    """
    eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCIsImtpZCI6Im9uZSIsImNyaXQiOlsiZXhwIl19.eyJpc3MiOiJodHR\
    wczovL2lzc3Vlci5leGFtcGxlIiwiYXVkIjoiYXBwIiwiaWF0IjoxNzAwMDAwMDAwLCJhdXRoX3RpbWUiOjE3MDA\
    wMDAwMDAsImV4cCI6MTcwMDAwMzYwMCwic3ViIjoiYWRhIiwiZmlyZWJhc2UiOnsiaWRlbnRpdGllcyI6eyJnb29\
    nbGUuY29tIjpbIjEiXX19fQ.Po_ZP329sSc2XjFp71iw0hbP7C_WZBQ_Jgz0doCo0auQVtL7ilIMs72QqFhHAlFy\
    iALHRsutMlGRaPAA1fmkGCOqRhDjLeX5BbEr5WUmh0ccDvhYedOagj3Y7SxKBfsKRBC3aYfaUe2jurgJD5r-V7g0\
    EWZ-Dy9k6dLkb1g9fcf7B1lG274zpLB5cRWZCLdOYo2je0_MryNEt9h5YgY49yvkYo-AzUvIgO9OlJE21fvGibWn\
    qEvXa8THg7jqF3aSgt_fdghcDvuNOJ4HsGxkGOALJ8opIQRhAUr0qOsrsnMMVbLa0kLfqOCE7fPE295YBSyPzYmW\
    HlT6obheqTGz0g
    """
  static let confused =
    """
    eyJhbGciOiJIUzI1NiIsImtpZCI6Im9uZSJ9.eyJpc3MiOiJodHRwczovL2lzc3Vlci5leGFtcGxlIiwiYXVkIjo\
    iYXBwIiwiaWF0IjoxNzAwMDAwMDAwLCJhdXRoX3RpbWUiOjE3MDAwMDAwMDAsImV4cCI6MTcwMDAwMzYwMCwic3V\
    iIjoiYWRhIiwiZmlyZWJhc2UiOnsiaWRlbnRpdGllcyI6eyJnb29nbGUuY29tIjpbIjEiXX19fQ.qQ4HXkW-0V1Z\
    7WftrIpClpPCL12HSWLvWKDOf-uUB0A
    """
  static let hs256 =
    """
    eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJodHRwczovL2lzc3Vlci5leGFtcGxlIiwiYXVkIjo\
    iYXBwIiwiaWF0IjoxNzAwMDAwMDAwLCJhdXRoX3RpbWUiOjE3MDAwMDAwMDAsImV4cCI6MTcwMDAwMzYwMCwic3V\
    iIjoiYWRhIiwiZmlyZWJhc2UiOnsiaWRlbnRpdGllcyI6eyJnb29nbGUuY29tIjpbIjEiXX19fQ.ci9i1YbhjHpI\
    dqu3_LM35gQuCPGo_7isCC5QMdxY4FM
    """
  static let hs256OtherSecret =
    """
    eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJodHRwczovL2lzc3Vlci5leGFtcGxlIiwiYXVkIjo\
    iYXBwIiwiaWF0IjoxNzAwMDAwMDAwLCJhdXRoX3RpbWUiOjE3MDAwMDAwMDAsImV4cCI6MTcwMDAwMzYwMCwic3V\
    iIjoiYWRhIiwiZmlyZWJhc2UiOnsiaWRlbnRpdGllcyI6eyJnb29nbGUuY29tIjpbIjEiXX19fQ.6ZDHwGYgC0qb\
    jwxuI2SRqpZ-YdT3_aWjA1_pX5bJO90
    """
  static let hs256ManyAudiences =
    """
    eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJodHRwczovL2lzc3Vlci5leGFtcGxlIiwiYXVkIjp\
    bIm90aGVyIiwiYXBwIl0sImlhdCI6MTcwMDAwMDAwMCwiYXV0aF90aW1lIjoxNzAwMDAwMDAwLCJleHAiOjE3MDA\
    wMDM2MDAsInN1YiI6ImFkYSIsImZpcmViYXNlIjp7ImlkZW50aXRpZXMiOnsiZ29vZ2xlLmNvbSI6WyIxIl19fX0\
    .CqiI6Qe9NwZ3zThGMMb8ey9Ah9AKqdoUUq2CVUeErNQ
    """
  static let hs256Contradictory =
    """
    eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJodHRwczovL2lzc3Vlci5leGFtcGxlIiwiYXVkIjo\
    iYXBwIiwiaWF0IjoxNzAwMDAwMDAwLCJhdXRoX3RpbWUiOjE3MDAwMDAwMDAsImV4cCI6MTcwMDAwMzYwMCwic3V\
    iIjoiYWRhIiwiZmlyZWJhc2UiOnsiaWRlbnRpdGllcyI6eyJnb29nbGUuY29tIjpbIjEiXX19LCJ1c2VyX2lkIjo\
    iYm9iIn0.g7L2vwXYT552xUEFYVmQ2hAB6iTLk2z-8M-rQm_0GlI
    """
  static let hs256Endless =
    """
    eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJodHRwczovL2lzc3Vlci5leGFtcGxlIiwiYXVkIjo\
    iYXBwIiwiaWF0IjoxNzAwMDAwMDAwLCJhdXRoX3RpbWUiOjE3MDAwMDAwMDAsInN1YiI6ImFkYSIsImZpcmViYXN\
    lIjp7ImlkZW50aXRpZXMiOnsiZ29vZ2xlLmNvbSI6WyIxIl19fX0.SNX7HILYgzJGW1MnxpKt0LcokCI1ZXcgwiy\
    fLI7rccM
    """
  static let hs256Undated =
    """
    eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJodHRwczovL2lzc3Vlci5leGFtcGxlIiwiYXVkIjo\
    iYXBwIiwiYXV0aF90aW1lIjoxNzAwMDAwMDAwLCJleHAiOjE3MDAwMDM2MDAsInN1YiI6ImFkYSIsImZpcmViYXN\
    lIjp7ImlkZW50aXRpZXMiOnsiZ29vZ2xlLmNvbSI6WyIxIl19fX0.uZTcR0XtjGZkxykmPRHVhLEwPoz9FN39PNv\
    P2jYuzNs
    """
  static let hs256Nobody =
    """
    eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJodHRwczovL2lzc3Vlci5leGFtcGxlIiwiYXVkIjo\
    iYXBwIiwiaWF0IjoxNzAwMDAwMDAwLCJhdXRoX3RpbWUiOjE3MDAwMDAwMDAsImV4cCI6MTcwMDAwMzYwMCwiZml\
    yZWJhc2UiOnsiaWRlbnRpdGllcyI6eyJnb29nbGUuY29tIjpbIjEiXX19fQ.eaL_DnJ9zj1xRhNaMIlBMJ5cs0wQ\
    _ZCAiQ4_af8VtuU
    """
  static let hs256Later =
    """
    eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJodHRwczovL2lzc3Vlci5leGFtcGxlIiwiYXVkIjo\
    iYXBwIiwiaWF0IjoxNzAwMDAwMDAwLCJhdXRoX3RpbWUiOjE3MDAwMDAwMDAsImV4cCI6MTcwMDAwMzYwMCwic3V\
    iIjoiYWRhIiwiZmlyZWJhc2UiOnsiaWRlbnRpdGllcyI6eyJnb29nbGUuY29tIjpbIjEiXX19LCJuYmYiOjE3MDA\
    wMDE4MDB9.dWRCRp9mOKDMGVIzccIod4UPqQelh9xJX2yIbbij8WQ
    """
  static let hs256TextTime =
    """
    eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJodHRwczovL2lzc3Vlci5leGFtcGxlIiwiYXVkIjo\
    iYXBwIiwiaWF0IjoxNzAwMDAwMDAwLCJhdXRoX3RpbWUiOjE3MDAwMDAwMDAsImV4cCI6Ijk5OTk5OTk5OTkiLCJ\
    zdWIiOiJhZGEiLCJmaXJlYmFzZSI6eyJpZGVudGl0aWVzIjp7Imdvb2dsZS5jb20iOlsiMSJdfX19.OPtzDosjWF\
    XqY2mnIaqlGABJ7KXWfgdXi59WfbJlKRw
    """
  static let unsigned =
    """
    eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0.eyJpc3MiOiJodHRwczovL2lzc3Vlci5leGFtcGxlIiwiYXVkIjoi\
    YXBwIiwiaWF0IjoxNzAwMDAwMDAwLCJhdXRoX3RpbWUiOjE3MDAwMDAwMDAsImV4cCI6MTcwMDAwMzYwMCwic3Vi\
    IjoiYWRhIiwiZmlyZWJhc2UiOnsiaWRlbnRpdGllcyI6eyJnb29nbGUuY29tIjpbIjEiXX19fQ.
    """

  /// A token without a signature, for a user.
  static func unsigned(_ user: String) -> String {
    let parts = ["{\"alg\":\"none\",\"typ\":\"JWT\"}", "{\"sub\":\"\(user)\"}"].map { text in
      Data(text.utf8).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_")
        .replacing("=", with: "")
    }
    return parts.joined(separator: ".") + "."
  }

  /// A JSON Web Key Set of the keys one and two.
  static let keySet =
    #"""
    {"keys":[{"kty":"RSA","alg":"RS256","use":"sig","kid":"one","n":"vbBOKgzd2LROv6NnAWd6dvR\#
    26xPlECUFz8p25ZksHEZlzk1suk8RUdIqGR3QbXdihwa1DxZAkft-tCGDnIRSGgwebg59p_CyGelrqJOr62mcW7L\#
    CJ95jTYS8o9eRC_yBdQNYHSlVOAZm5L6QFwWkqOGgz1js_JQDuIS2i_V7vK50eegTXPfoJ-tVHrkB2uvxBm0d8M2\#
    KLUW1smNmS0E308kGcMLnCWKsse9qVz4Qi8kmAHq7WGywuxoGIDyC8VICfGwS1A2uvfFQHfVXd7jbYPSmTu1Iq7E\#
    W94hVWKcSeVV9CBV_LY9ZuXRCGFAEhmCewFi8MfrWeutUqRGvMy2fqw","e":"AQAB"},{"kty":"RSA","alg":\#
    "RS256","use":"sig","kid":"two","n":"xylnhd0HqmlnrkTw5fgvpOLonmPUZPzrsbHIXxqW_2FQt-wYRsI\#
    HsGKICNIbumihqVB5fmYjA5VpkoOvGC8fEMWONfdn7z9XyThLieadP3WghUs3j_L4zmrKnzrm8ndqnkAeNxX0Hoo\#
    GyR2PuifyN12Pbl_7omy33UKVHW6u9DXxDJxmpIZ86_NoOWVpUdEFeii4QbBrLbm2_bnru4nwK9-ewdLkCGBKdIl\#
    HkXn4uYUs0DYQsqZzQHkIvcE-nl6Aj57zXfgroveA0YlFPFaSv9srPkI_oNf-0SV_z0IPNwKyitYrAL8Ex7xirJ-\#
    tSI1krHDpgIdhOUKMrW_JMrNbNw","e":"AQAB"}]}
    """#

  /// One key of 1024 bits.
  static let smallKeySet =
    #"""
    {"keys":[{"kty":"RSA","alg":"RS256","use":"sig","kid":"small","n":"sYEYF45m_ZCSLSjaWohk4\#
    brxborAxYNBo6W0AV1sV5NYPwG8-SSPzzycd9T-OvRqpNhPFLvqX_AW_S2OqOeaeZFvjGt2eTSHW7uXZJGcu_XgI\#
    rgtHbckz_HrkxikU5hsPSoQ4tGW4IpuOIS3gDfCrydlsp8IeoWpdrhkj7izA-8","e":"AQAB"}]}
    """#

  /// The key one as a PEM text.
  static let publicKeyOfOne =
    """
    -----BEGIN PUBLIC KEY-----
    MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAvbBOKgzd2LROv6NnAWd6
    dvR26xPlECUFz8p25ZksHEZlzk1suk8RUdIqGR3QbXdihwa1DxZAkft+tCGDnIRS
    Ggwebg59p/CyGelrqJOr62mcW7LCJ95jTYS8o9eRC/yBdQNYHSlVOAZm5L6QFwWk
    qOGgz1js/JQDuIS2i/V7vK50eegTXPfoJ+tVHrkB2uvxBm0d8M2KLUW1smNmS0E3
    08kGcMLnCWKsse9qVz4Qi8kmAHq7WGywuxoGIDyC8VICfGwS1A2uvfFQHfVXd7jb
    YPSmTu1Iq7EW94hVWKcSeVV9CBV/LY9ZuXRCGFAEhmCewFi8MfrWeutUqRGvMy2f
    qwIDAQAB
    -----END PUBLIC KEY-----
    """

  /// A certificate of the key two.
  static let certificateOfTwo =
    """
    -----BEGIN CERTIFICATE-----
    MIIC/zCCAeegAwIBAgIUGzgsSV4UCVkuTByKtILrtUXXgfYwDQYJKoZIhvcNAQEL
    BQAwDjEMMAoGA1UEAwwDdHdvMCAXDTI2MTEyMjE4MTcxN1oYDzIxMjYxMDI5MTgx
    NzE3WjAOMQwwCgYDVQQDDAN0d28wggEiMA0GCSqGSIb3DQEBAQUAA4IBDwAwggEK
    AoIBAQDHKWeF3QeqaWeuRPDl+C+k4uieY9Rk/OuxschfGpb/YVC37BhGwgewYogI
    0hu6aKGpUHl+ZiMDlWmSg68YLx8QxY4192fvP1fJOEuJ5p0/daCFSzeP8vjOasqf
    Oubyd2qeQB43FfQeigbJHY+6J/I3XY9uX/uibLfdQpUdbq70NfEMnGakhnzr82g5
    ZWlR0QV6KLhBsGstubb9ueu7ifAr357B0uQIYEp0iUeRefi5hSzQNhCypnNAeQi9
    wT6eXoCPnvNd+Cui94DRiUU8VpK/2ys+Qj+g1/7RJX/PQg83ArKK1isAvwTHvGKs
    n61IjWSscOmAh2E5Qoytb8kys1s3AgMBAAGjUzBRMB0GA1UdDgQWBBRM/75HHSLU
    fWjjkj+AeDhSss2oOjAfBgNVHSMEGDAWgBRM/75HHSLUfWjjkj+AeDhSss2oOjAP
    BgNVHRMBAf8EBTADAQH/MA0GCSqGSIb3DQEBCwUAA4IBAQBb1NOvmxxhVERcEqyN
    358ujFmopzhfrmS6sCAzkI3lOE0B6QkGlf8oz3J9gX2N9wCP9XwSuZusXVFMchBX
    N3XI/j8zYDMAOMx37Qox87hYQImj1ks5JiKLp5ufaMZjwibasjV9OA0W0JJvCn17
    mPX9zWcg52zHNZGG5WTB448zN9PkbkDrJAWbq5uK66AnBwgCqcCfNLGsAlsdMIWd
    4bAD8BIuJN3XRzC5bhlWyZ6POnK97ji6ZtRtTK5zVyVWSiwnnhU4uYWKz87BAQ4Z
    /4YYzOyRWEIx3aI4bGpDJ8+a4yMXJ1x1ten3ocBcz5NBByDNtky85lLne8Y1ITau
    CM15
    -----END CERTIFICATE-----
    """
}

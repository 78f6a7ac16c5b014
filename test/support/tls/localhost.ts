/**
 * A self-signed certificate for tests, and its key. The certificate is valid until 2126 for the name `localhost`, but
 * not for the address of `localhost`.
 */
export const certificate = `
-----BEGIN CERTIFICATE-----
MIIBlTCCATugAwIBAgIUDufiFzEVoDSbTXDNSQ4kn/CS+O8wCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMDE3NDI0NFoYDzIxMjYxMDI3
MTc0MjQ0WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAATdSaEpTyNrfBGLP/Dg8YIx/m4UtCRiGLnA5rHFHZKYuTOmDEP28/Rq
lNl3SsP9drXU/1UnXffycXmhToZdoJhno2kwZzAdBgNVHQ4EFgQUrylVTs9PhIWl
VqWwDYGBGXW17dQwHwYDVR0jBBgwFoAUrylVTs9PhIWlVqWwDYGBGXW17dQwDwYD
VR0TAQH/BAUwAwEB/zAUBgNVHREEDTALgglsb2NhbGhvc3QwCgYIKoZIzj0EAwID
SAAwRQIgODbz0bnuJaRitzTwPwfpg6AG3wvZT7+ilYs2o2RqL+UCIQC8B0DEn3My
/cHfjYidUgFEoNn/VFleDiTNxQf7xVAN3g==
-----END CERTIFICATE-----
`.trimStart();

export const privateKey = `
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgSlAuW4A1gtIZdXV2
pif+dcj3yjwwiJQBRHAygLytyXChRANCAATdSaEpTyNrfBGLP/Dg8YIx/m4UtCRi
GLnA5rHFHZKYuTOmDEP28/RqlNl3SsP9drXU/1UnXffycXmhToZdoJhn
-----END PRIVATE KEY-----
`.trimStart();

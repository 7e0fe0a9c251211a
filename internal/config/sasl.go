package config

// SASL is a login to Kafka.
type SASL struct {
	Mechanism    string // one of mechanisms
	User         string
	Password     Secret
	PasswordFile string // read again when it changes
	OAuth        *OAuth // of OAUTHBEARER
	Region       string // of AWS_MSK_IAM
}

// OAuth is where tokens come from, by the client credentials grant (RFC 6749, 4.4).
type OAuth struct {
	TokenURL         string
	ClientID         string
	ClientSecret     Secret
	ClientSecretFile string // read again when it changes
	Scopes           []string
	Audience         string
	CA               string            // of the token's server; "" trusts the system's authorities
	Extensions       map[string]string // SASL extensions (KIP-342)
}

func (s *SASL) keys() []key {
	return []key{
		{"mechanism", word(&s.Mechanism, mechanisms()), "Needed."},
		{"user", text(&s.User), "User name. Needed for PLAIN and SCRAM."},
		{"password", secret(&s.Password), "Password. PLAIN and SCRAM need this or `passwordFile`."},
		{"passwordFile", text(&s.PasswordFile), "A file with the password, read again when it changes."},
		{"oauth", optional(&s.OAuth),
			"Where tokens come from, by the client credentials grant. Needed for OAUTHBEARER."},
		{"region", text(&s.Region), "AWS region, for AWS_MSK_IAM. Without it, that of the AWS configuration."},
	}
}

func (o *OAuth) keys() []key {
	return []key{
		{"tokenUrl", text(&o.TokenURL), "Needed. Address of the token endpoint."},
		{"clientId", text(&o.ClientID), "Needed."},
		{"clientSecret", secret(&o.ClientSecret), "This or `clientSecretFile` is needed."},
		{"clientSecretFile", text(&o.ClientSecretFile), "A file with the secret, read again when it changes."},
		{"scopes", list(&o.Scopes), "Scopes to ask the token for."},
		{"audience", text(&o.Audience), "Audience to ask the token for."},
		{"ca", text(&o.CA),
			"Path of a PEM file with the authorities of the token's server. Without it, the system's authorities."},
		{"extensions", dictionary(&o.Extensions), "SASL extensions (KIP-342)."},
	}
}

// check checks that the login has what its mechanism needs, and nothing that another one needs.
func (s *SASL) check(k *checker, path string) {
	if s.Mechanism == "" {
		k.oneOf(path+".mechanism", "", mechanisms())
	}
	if oneOf(s.Mechanism, mechanisms()) != nil {
		return
	}
	token, region := s.Mechanism == oauthBearer, s.Mechanism == mskIAM
	for _, f := range []struct {
		key                    string
		given, known, optional bool
	}{
		{"user", s.User != "", !token && !region, false},
		{"password", s.Password != "" || s.PasswordFile != "", !token && !region, false},
		{"oauth", s.OAuth != nil, token, false},
		{"region", s.Region != "", region, true},
	} {
		switch {
		case f.given && !f.known:
			k.problem(path+"."+f.key, "mechanism %s has no %s; leave it out", s.Mechanism, f.key)
		case !f.given && f.known && !f.optional:
			k.problem(path+"."+f.key, "missing; mechanism %s needs it", s.Mechanism)
		}
	}
	if s.Password != "" && s.PasswordFile != "" {
		k.problem(path+".passwordFile", "a password here and in password; leave one out")
	}
	if s.OAuth != nil && token {
		s.OAuth.check(k, path+".oauth")
	}
}

func (o *OAuth) check(k *checker, path string) {
	for _, f := range []struct {
		key   string
		given bool
	}{
		{"tokenUrl", o.TokenURL != ""}, {"clientId", o.ClientID != ""}, {"clientSecret", o.ClientSecret != "" || o.ClientSecretFile != ""},
	} {
		if !f.given {
			k.problem(path+"."+f.key, "missing; a token cannot be requested without it")
		}
	}
	if o.ClientSecret != "" && o.ClientSecretFile != "" {
		k.problem(path+".clientSecretFile", "a secret here and in clientSecret; leave one out")
	}
}

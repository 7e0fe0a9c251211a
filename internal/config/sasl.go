package config

// SASL is a login to Kafka.
type SASL struct {
	Mechanism    string `key:"mechanism" of:"PLAIN SCRAM-SHA-256 SCRAM-SHA-512 OAUTHBEARER AWS_MSK_IAM"`
	User         string `key:"user"`
	Password     Secret `key:"password"`
	PasswordFile string `key:"passwordFile"`
	OAuth        *OAuth `key:"oauth"`
	Region       string `key:"region"`
}

// OAuth is where tokens come from, by the client credentials grant (RFC 6749, 4.4).
type OAuth struct {
	TokenURL         string            `key:"tokenUrl"`
	ClientID         string            `key:"clientId"`
	ClientSecret     Secret            `key:"clientSecret"`
	ClientSecretFile string            `key:"clientSecretFile"`
	Scopes           []string          `key:"scopes"`
	Audience         string            `key:"audience"`
	CA               string            `key:"ca"`
	Extensions       map[string]string `key:"extensions"`
}

// check checks that the login has what its mechanism needs, and nothing that another one needs.
func (s *SASL) check(k *checker, path string) {
	mechanisms := allowedBy[SASL]("mechanism")
	if s.Mechanism == "" {
		k.oneOf(path+".mechanism", "", mechanisms)
	}
	if oneOf(s.Mechanism, mechanisms) != nil {
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

// What looks like a secret, and its mask in texts that are passed on: pages, exports, JSON, lines of errors.
//
// A text that a trial needs is kept whole, in files for their owner alone. Threading: pure functions. Errors: none.
#ifndef DSAT_BASE_SECRETS_H_
#define DSAT_BASE_SECRETS_H_

#include <string>
#include <string_view>

namespace dsat {

// In place of a secret.
inline constexpr std::string_view kSecretMask = "***";

// Whether a value with this name is probably a secret: "HF_TOKEN", "--api-key", "dbPassword"; not "pad_token",
// "max_tokens" or "API_KEY_FILE".
bool names_secret(std::string_view name);

// Whether a value that is named so is no secret all the same: "true", "none", "$HF_TOKEN", a count of tokens.
bool is_harmless(std::string_view name, std::string_view value);

// The text with a mask in place of what looks like a secret: the value of NAME=value, --name value and "name": "value",
// the user and password of an address, and tokens of known forms ("hf_...", "ghp_...").
std::string mask_secrets(std::string_view text);

}  // namespace dsat

#endif  // DSAT_BASE_SECRETS_H_

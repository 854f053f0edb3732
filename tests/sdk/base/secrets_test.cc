// The list of what looks like a secret, and what is left of texts.
#include "dsat/base/secrets.h"

#include <gtest/gtest.h>

namespace dsat {
namespace {

TEST(Secrets, AreKnownByTheirNames) {
  for (const char* name :
       {"HF_TOKEN", "--api-key", "WANDB_API_KEY", "wandbApiKey", "AWS_SECRET_ACCESS_KEY", "dbPassword", "password",
        "client_secret", "token", "--hub_token", "GITHUB_PAT", "SENTRY_DSN", "Authorization", "SLACK_WEBHOOK_URL",
        "AccountKey", "connection-string", "SECRET_KEY_BASE", "apikey"}) {
    EXPECT_TRUE(names_secret(name)) << name;
  }
  for (const char* name : {"", "--", "pad_token", "eos_token", "max_tokens", "num_tokens", "tokenizer", "API_KEY_FILE",
                           "PWD", "OLDPWD", "key", "lr", "monkey", "secretary", "train_micro_batch_size_per_gpu"}) {
    EXPECT_FALSE(names_secret(name)) << name;
  }
}

TEST(Secrets, AreMaskedInTexts) {
  const struct {
    const char *text, *masked;
  } kCases[] = {
      {"env HF_TOKEN=hf_x python3 t.py", "env HF_TOKEN=*** python3 t.py"},
      {"t.py --api-key=abc --lr 1", "t.py --api-key=*** --lr 1"},
      {"t.py --api-key abc --lr 1", "t.py --api-key *** --lr 1"},
      {"t.py --api-key --lr 1", "t.py --api-key --lr 1"},
      {"git clone https://ann:pw@host/x", "git clone https://***@host/x"},
      {"https://ghtoken@github.com/x", "https://***@github.com/x"},
      {"postgres://u:p@db/x", "postgres://***@db/x"},
      {"ssh://git@host/x and a@b.c", "ssh://git@host/x and a@b.c"},
      {"http://host/x?sig=abc&n=1", "http://host/x?sig=***&n=1"},
      {R"({"api_key": "a b", "lr": 1})", R"({"api_key": "***", "lr": 1})"},
      {R"(password='a b' x)", R"(password='***' x)"},
      {"Authorization: Bearer abcdef", "Authorization: Bearer ***"},
      {"api_key: abcdefgh", "api_key: ***"},
      {"unexpected token: line 3", "unexpected token: line 3"},
      {"KeyError: 'api_key'", "KeyError: 'api_key'"},
      {"token=512 token=true token=$HF_TOKEN password=", "token=512 token=true token=$HF_TOKEN password="},
      {"pad_token=<pad> eos_token=</s>", "pad_token=<pad> eos_token=</s>"},
      {"saw hf_abcdefghijklmnopqrstuv here", "saw *** here"},
      {"AKIAABCDEFGHIJKLMNOP", "***"},
      {"password", "password"},
      {"password=", "password="},
      {"--password", "--password"},
      {"password=\"", "password=\""},
      {"\xff\xfetoken=\xff\xff", "\xff\xfetoken=***"},
      {"", ""},
  };
  for (const auto& one : kCases) EXPECT_EQ(mask_secrets(one.text), one.masked);
  EXPECT_EQ(mask_secrets(mask_secrets("a HF_TOKEN=b")), "a HF_TOKEN=***") << "a second time changes nothing";
}

}  // namespace
}  // namespace dsat

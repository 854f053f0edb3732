// The head of a request, as any client of dsat-host serve sends it.
#include "fuzz/fuzz_target.h"
#include "serve/http_server.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  dsat::cli::HttpRequest request;
  bool keeps_alive = false;
  const auto answer = dsat::cli::read_head(dsat::fuzz::text_of(data, size), request, keeps_alive);
  if (answer.status == 0 && request.method != "GET" && request.method != "HEAD") __builtin_trap();
  if (answer.status != 0 && !answer.body) __builtin_trap();
  return 0;
}

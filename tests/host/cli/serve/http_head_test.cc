// What a server reads of a request, and what it refuses before it looks for a document.
#include <gtest/gtest.h>

#include "serve/http_server.h"

namespace dsat::cli {
namespace {

int status_of(const std::string& head) {
  HttpRequest request;
  bool keeps_alive = false;
  return read_head(head, request, keeps_alive).status;
}

TEST(ReadHead, ARequestIsRead) {
  HttpRequest request;
  bool keeps_alive = false;
  EXPECT_EQ(read_head("GET /a/b?x=1 HTTP/1.1\r\nHost: here:80\r\nACCEPT-encoding: GZIP \r\nRange: bytes=0-1,2-3\r\n"
                      "If-None-Match: \"t\"\r\nOrigin: http://here:80",
                      request, keeps_alive)
                .status,
            0);
  EXPECT_EQ(request.path, "/a/b");
  EXPECT_EQ(request.host, "here:80");
  EXPECT_EQ(request.origin, "http://here:80");
  EXPECT_EQ(request.accept_encoding, "gzip");
  EXPECT_EQ(request.if_none_match, "\"t\"");
  EXPECT_TRUE(keeps_alive);
  EXPECT_EQ(read_head("HEAD / HTTP/1.0\nHost: x", request, keeps_alive).status, 0);
  EXPECT_FALSE(keeps_alive);
  read_head("GET / HTTP/1.1\r\nConnection: Close", request, keeps_alive);
  EXPECT_FALSE(keeps_alive);
}

TEST(ReadHead, WhatIsAmbiguousOrHasABodyIsRefused) {
  const std::string line = "GET / HTTP/1.1\r\n";
  for (const char* bad : {"", "GET", "GET /", "GET  / HTTP/1.1", "GET / HTTP/2", " GET / HTTP/1.1", "GET / x HTTP/1.1",
                          "\r\nGET / HTTP/1.1", "GET /\x01 HTTP/1.1", "GET / HTTP/1.1 "}) {
    EXPECT_EQ(status_of(bad), 400) << bad;
  }
  for (const char* bad :
       {"Host: a\r\nHost: a", "Host: a\r\nhost: b", "Origin: http://a\r\nOrigin: null", "no header", ": empty",
        " folded: x", "Host: a\r\n more", "Content-Length: 1", "Transfer-Encoding: chunked", "X: \x01"}) {
    EXPECT_EQ(status_of(line + bad), 400) << bad;
  }
  EXPECT_EQ(status_of(line + "Content-Length: 0"), 0);
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "get"}) {
    EXPECT_EQ(status_of(std::string(method) + " / HTTP/1.1\r\nContent-Length: 1"), 405) << method;
  }
}

}  // namespace
}  // namespace dsat::cli

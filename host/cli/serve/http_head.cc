// Reads the head of a request line by line. What is not needed is not kept.
#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>

#include "serve/http_server.h"

namespace dsat::cli {
namespace {

std::string_view next_line(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

std::string_view trimmed(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of(" \t"), text.size());
  text.remove_prefix(begin);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool is_clean(std::string_view line) {
  return std::none_of(line.begin(), line.end(),
                      [](char c) { return (static_cast<unsigned char>(c) < ' ' && c != '\t') || c == 0x7F; });
}

// "GET /path?query HTTP/1.1"
bool read_request_line(std::string_view line, HttpRequest& request, bool& keeps_alive) {
  const size_t first = line.find(' '), last = line.rfind(' ');
  if (first == std::string_view::npos || first == 0 || last == first) return false;
  const std::string_view target = line.substr(first + 1, last - first - 1), version = line.substr(last + 1);
  if (target.empty() || target.find(' ') != std::string_view::npos) return false;
  if (version != "HTTP/1.1" && version != "HTTP/1.0") return false;
  keeps_alive = version == "HTTP/1.1";
  request.method = line.substr(0, first);
  request.path = target.substr(0, target.find('?'));
  return true;
}

}  // namespace

HttpAnswer refusal(int status, const std::string& line) {
  return {status, "Content-Type: text/plain; charset=utf-8\r\nConnection: close\r\n",
          std::make_shared<const std::string>(line + "\n")};
}

HttpAnswer read_head(std::string_view head, HttpRequest& request, bool& keeps_alive) {
  const auto bad = [](const char* line) { return refusal(400, line); };
  const std::string_view first = next_line(head);
  if (!is_clean(first) || !read_request_line(first, request, keeps_alive)) return bad("this is no request of HTTP/1.1");
  if (request.method != "GET" && request.method != "HEAD") return refusal(405, "only GET: this page is for reading");
  int hosts = 0, origins = 0;
  while (!head.empty()) {
    const std::string_view line = next_line(head);
    const size_t colon = line.find(':');
    if (!is_clean(line) || colon == std::string_view::npos || colon == 0 || line[0] == ' ' || line[0] == '\t') {
      return bad("this is no header");
    }
    const std::string name = lower(line.substr(0, colon)), value(trimmed(line.substr(colon + 1)));
    if (name == "host") {
      ++hosts;
      request.host = value;
    } else if (name == "origin") {
      ++origins;
      request.origin = value;
    } else if (name == "if-none-match") {
      request.if_none_match = value;
    } else if (name == "accept-encoding") {
      request.accept_encoding = lower(value);
    } else if (name == "connection") {
      keeps_alive = keeps_alive && lower(value) != "close";
    } else if (name == "transfer-encoding" || (name == "content-length" && value != "0")) {
      return bad("a request here has no body");
    }
  }
  if (hosts > 1 || origins > 1) return bad("one Host and one Origin at most");
  HttpAnswer accepted;
  accepted.status = 0;
  return accepted;
}

}  // namespace dsat::cli

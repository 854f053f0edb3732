// Boost.Beast over Boost.Asio: a connection for each request, since an export makes a few.
#define BOOST_ASIO_DISABLE_THREADS  // a request has one thread, and the thread sanitizer does not know Asio's fences
#include "export/http_client.h"

#include <fmt/format.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <chrono>
#include <filesystem>

#include "dsat/error.h"

namespace dsat::cli {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;
using Tcp = asio::ip::tcp;

constexpr std::chrono::seconds kToConnect{5}, kToAnswer{30};

Error failure(const char* what, const error_code& error) {
  const std::string why = error == beast::error::timeout ? "no answer in time" : error.message();
  return Error(DSAT_INTERNAL, fmt::format("cannot {}: {}", what, why));
}

// A program that has its own copy of OpenSSL does not know where the system keeps its certificates.
void trust_the_system(asio::ssl::context& context) {
  context.set_verify_mode(asio::ssl::verify_peer);
  error_code ignored;
  context.set_default_verify_paths(ignored);
  for (const char* file : {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
                           "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"}) {
    std::error_code missing;
    if (std::filesystem::exists(file, missing)) context.load_verify_file(file, ignored);
  }
}

http::request<http::string_body> message_of(const Site& site, const ClientRequest& request) {
  http::request<http::string_body> message(http::string_to_verb(request.method), request.target, 11);
  const bool usual = site.port == (site.tls ? "443" : "80");
  const std::string host = site.host.find(':') == std::string::npos ? site.host : "[" + site.host + "]";
  message.set(http::field::host, usual ? host : host + ":" + site.port);
  message.set(http::field::user_agent, "dsat-host");
  message.set(http::field::connection, "close");
  for (const auto& [name, value] : request.headers) message.set(name, value);
  message.body() = request.body;
  message.prepare_payload();
  return message;
}

// Runs one operation to its end. `start` begins it with the handler that it is given.
template <class Start>
void run(asio::io_context& context, const char* what, Start&& start) {
  error_code result = asio::error::operation_aborted;
  start([&](const error_code& error, auto&&...) { result = error; });
  context.restart();
  context.run();
  if (result) throw failure(what, result);
}

template <class Stream>
ClientAnswer exchange(asio::io_context& context, Stream& stream, const Site& site, const ClientRequest& request,
                      size_t most_bytes) {
  const auto message = message_of(site, request);
  run(context, "send", [&](auto done) { http::async_write(stream, message, done); });
  beast::flat_buffer buffer;
  http::response_parser<http::string_body> parser;
  parser.body_limit(most_bytes);
  try {
    run(context, "read the answer", [&](auto done) { http::async_read(stream, buffer, parser, done); });
  } catch (const Error&) {
    if (parser.is_header_done() && parser.get().body().size() <= most_bytes && !parser.is_done()) {
      throw Error(DSAT_INTERNAL, fmt::format("its answer is longer than {} MB, or torn", most_bytes >> 20));
    }
    throw;
  }
  return {parser.get().result_int(), std::move(parser.get().body())};
}

void connect(asio::io_context& context, beast::tcp_stream& stream, const Site& site) {
  Tcp::resolver resolver(context);
  error_code error;
  const auto places = resolver.resolve(site.host, site.port, error);
  if (error) throw failure("find the server", error);
  stream.expires_after(kToConnect);
  run(context, "connect", [&](auto done) { stream.async_connect(places, done); });
  stream.expires_after(kToAnswer);
}

}  // namespace

std::optional<Site> site_of(const std::string& uri) {
  Site site;
  size_t begin = 0;
  if (uri.rfind("http://", 0) == 0) {
    begin = 7;
  } else if (uri.rfind("https://", 0) == 0) {
    begin = 8;
    site.tls = true;
  } else {
    return std::nullopt;
  }
  const size_t end = std::min(uri.find('/', begin), uri.size());
  std::string place = uri.substr(begin, end - begin);
  site.path = uri.substr(end);
  while (!site.path.empty() && site.path.back() == '/') site.path.pop_back();
  const size_t bracket = place.rfind(']'), colon = place.rfind(':');
  const bool has_port = colon != std::string::npos && (bracket == std::string::npos || colon > bracket);
  site.port = has_port ? place.substr(colon + 1) : site.tls ? "443" : "80";
  if (has_port) place.resize(colon);
  if (place.size() > 2 && place.front() == '[' && place.back() == ']') place = place.substr(1, place.size() - 2);
  const bool number = !site.port.empty() && site.port.find_first_not_of("0123456789") == std::string::npos;
  const bool plain = place.find_first_of(" @?#\"<>\\") == std::string::npos;
  if (!number || site.port.size() > 5 || place.empty() || !plain) return std::nullopt;
  site.host = place;
  return site;
}

ClientAnswer send(const Site& site, const ClientRequest& request, size_t most_bytes) {
  asio::io_context context;
  if (!site.tls) {
    beast::tcp_stream stream(context);
    connect(context, stream, site);
    return exchange(context, stream, site, request, most_bytes);
  }
  asio::ssl::context tls(asio::ssl::context::tls_client);
  trust_the_system(tls);
  beast::ssl_stream<beast::tcp_stream> stream(context, tls);
  stream.set_verify_callback(asio::ssl::host_name_verification(site.host));
  SSL_set_tlsext_host_name(stream.native_handle(), site.host.c_str());
  connect(context, beast::get_lowest_layer(stream), site);
  run(context, "agree on TLS", [&](auto done) { stream.async_handshake(asio::ssl::stream_base::client, done); });
  return exchange(context, stream, site, request, most_bytes);
}

}  // namespace dsat::cli

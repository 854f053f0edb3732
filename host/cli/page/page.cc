// Inserts the data into the bundle as compressed text in a script element that never runs. Text of a trial cannot end
// the element, because base64 has no angle brackets.
#include "page/page.h"

#include <zlib.h>

#include <string_view>

#include "dsat/base/encode.h"
#include "dsat/config/json.h"
#include "dsat/error.h"
#include "page/plain.h"

// The page as web/ is bundled becomes part of the program as it is: the assembler includes it. CMake names the file in
// DSAT_PAGE_FILE, or leaves it out.
#ifdef DSAT_PAGE_FILE
asm(".section .rodata\n"
    ".global dsat_page_begin\n"
    ".global dsat_page_end\n"
    "dsat_page_begin:\n"
    ".incbin \"" DSAT_PAGE_FILE
    "\"\n"
    "dsat_page_end:\n"
    ".byte 0\n"
    ".previous\n");

extern "C" {
extern const char dsat_page_begin[];
extern const char dsat_page_end[];
}
#endif

namespace dsat::cli {
namespace {

// With marks where data and plain text go. Empty: built without it.
std::string_view bundle() {
#ifdef DSAT_PAGE_FILE
  return {dsat_page_begin, static_cast<size_t>(dsat_page_end - dsat_page_begin)};
#else
  return {};
#endif
}

constexpr std::string_view kDataMark = "<!--dsat-data-->", kPlainMark = "<!--dsat-plain-->";

void put(std::string& page, std::string_view mark, const std::string& text) {
  const size_t at = page.find(mark);
  if (at != std::string::npos) page.replace(at, mark.size(), text);
}

std::string trials_text(const host::StudyFacts& facts) {
  std::string text = "[";
  for (size_t i = 0; i < facts.trials.size(); ++i) {
    if (i > 0) text += ',';
    text += config::text_of(host::trial_to_json(facts, i));
  }
  return text + "]";
}

}  // namespace

bool has_bundle() { return !bundle().empty(); }

// The text is built trial by trial. The host writes this page often, and the JSON tree of a long study would need most
// of the host's memory.
std::string page_document(const host::StudyFacts& facts) {
  Json document = host::to_json_without_trials(facts);
  document["version"] = DSAT_VERSION;
  std::error_code error;  // the path is made absolute, because the page may be moved to another folder
  const auto dir = std::filesystem::absolute(facts.record.dir, error);
  if (!error) document["study"]["dir"] = dir.lexically_normal().string();
  std::string text;
  for (const auto& [key, value] : document.items()) {
    text +=
        (text.empty() ? "{\"" : ",\"") + key + "\":" + (key == "trials" ? trials_text(facts) : config::text_of(value));
  }
  return text + "}";
}

std::string study_page(const host::StudyFacts& facts) {
  if (!has_bundle()) return plain_page({&facts}, false);
  std::string page(bundle());
  put(page, kDataMark,
      "<script type=\"application/gzip\" id=\"dsat-data\">" + base64(gzip(page_document(facts))) + "</script>");
  put(page, kPlainMark, "<noscript>" + plain_study(facts) + "</noscript>");
  return page;
}

std::string served_page(const std::vector<const host::StudyFacts*>& studies) {
  if (!has_bundle()) return plain_page(studies, true);
  std::string page(bundle());
  put(page, kDataMark, "");
  put(page, kPlainMark, "<noscript>This page needs JavaScript; <code>dsat-host show DIR</code> does not.</noscript>");
  return page;
}

std::string gzip(std::string_view bytes) {
  z_stream stream{};
  constexpr int kGzip = 15 + 16, kMemory = 8;
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzip, kMemory, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw Error(DSAT_INTERNAL, "not enough memory to compress the page");
  }
  std::string out(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

}  // namespace dsat::cli

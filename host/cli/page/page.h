// The page of a study: one HTML file that needs no network, bundled from web/ and filled with the study's data.
//
// A program built without the bundle (-DDSAT_WEB=OFF, or no npm) makes a plain page of tables that says so.
// Threading: pure functions. Errors: dsat::Error where the machine has no memory to compress with.
#ifndef DSAT_CLI_PAGE_PAGE_H_
#define DSAT_CLI_PAGE_PAGE_H_

#include <string>
#include <string_view>
#include <vector>

#include "dsat/host/facts.h"

namespace dsat::cli {

// False: plain pages only.
bool has_bundle();

// The study's document with the program's version, as JSON text (docs/report.md).
std::string page_document(const host::StudyFacts& facts);

// One file with everything in it.
std::string study_page(const host::StudyFacts& facts);

// The page that asks its server for the data. Without the bundle: the studies as plain tables, read again by itself.
std::string served_page(const std::vector<const host::StudyFacts*>& studies);

// As the page carries and the server sends it.
std::string gzip(std::string_view bytes);

// Text of anybody's as it stands in HTML; control characters become blanks.
std::string html_escaped(std::string_view text);

}  // namespace dsat::cli

#endif  // DSAT_CLI_PAGE_PAGE_H_

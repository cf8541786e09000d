// What all pages share, whatever they report: the frame with its style sheet, for light and dark. A page needs
// nothing else, neither files nor scripts.
#pragma once

#include <string>

namespace tilewright::autotune::report {

// Well-formed XML after its first line, in UTF-8. title: any text; body: elements.
std::string whole_page(const std::string& title, const std::string& body);

// With its heading, a paragraph (of elements) on what it shows, and a body.
std::string section(const std::string& title, const std::string& about, const std::string& body);
// A row of the list at the top: any text.
std::string fact(const char* name, const std::string& text);

}  // namespace tilewright::autotune::report

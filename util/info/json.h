// Reports as JSON. A record is an object; records of a kind that may occur several times are an array under
// the plural of its name. The rails of a peer are in the peer's object.
#pragma once

#include <cstdio>
#include <string>

#include "base/report.h"

namespace cluster::info {

/// The members of one object, without its braces: `"host": {...}, "interfaces": [...]`.
std::string json_members(const Report& report);
/// The facts of one record, without braces.
std::string json_facts(const Record& record);
/// A JSON string with its quotes. `text` is the text of a Record: printable ASCII.
std::string json_quoted(const std::string& text);

}  // namespace cluster::info

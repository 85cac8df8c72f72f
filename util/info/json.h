// Reports for programs. A record becomes an object; records of a kind of which there may be several become
// an array under the plural of its name. The rails of a peer stand in the peer's object.
#pragma once

#include <cstdio>
#include <string>

#include "base/report.h"

namespace cluster::info {

/// The members of one object, without its braces: `"host": {...}, "interfaces": [...]`.
std::string json_members(const Report& report);
/// The facts of one record, without braces.
std::string json_facts(const Record& record);
/// A string of JSON, quotes included. `text` is what a Record holds: printable ASCII.
std::string json_quoted(const std::string& text);

}  // namespace cluster::info

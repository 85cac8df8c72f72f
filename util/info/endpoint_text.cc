#include "endpoint_text.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <utility>
#include <vector>

#include "json.h"
#include "text_table.h"

namespace cluster::info {
namespace {

/// "12.3 us": the unit in which it has one to three digits before the point.
std::string duration_text(const std::string& ns) {
  if (ns.empty()) return "";
  double value = std::strtod(ns.c_str(), nullptr);
  const std::pair<const char*, double> units[] = {{"ns", 1000}, {"us", 1000}, {"ms", 1000}, {"s", 60},
                                                  {"min", 60},  {"h", 24},    {"d", 1e9}};
  for (const auto& [unit, next] : units) {
    if (value < next) {
      char text[32];
      std::snprintf(text, sizeof text, value < 100 ? "%.1f %s" : "%.0f %s", value, unit);
      return text;
    }
    value /= next;
  }
  return ns;
}

std::string size_text(const std::string& bytes) {
  const double value = std::strtod(bytes.c_str(), nullptr);
  char text[32];
  if (value < 1 << 20) {
    std::snprintf(text, sizeof text, "%.1f KiB", value / (1 << 10));
  } else {
    std::snprintf(text, sizeof text, "%.1f MiB", value / (1 << 20));
  }
  return text;
}

const Record nothing("");

const Record& find(const Report& report, const char* kind) {
  for (const Record& record : report) {
    if (record.kind() == kind) return record;
  }
  return nothing;
}

std::string paragraph(const std::string& text) {
  constexpr std::size_t kParagraphMax = 96;  // a line has 100 characters, further ones begin with four blanks
  std::string lines = "  ";
  std::size_t begin = 0;
  while (text.size() - begin > kParagraphMax) {
    const std::size_t blank = text.rfind(' ', begin + kParagraphMax);
    if (blank == std::string::npos || blank <= begin) break;
    lines += text.substr(begin, blank - begin) + "\n    ";
    begin = blank + 1;
  }
  return lines + text.substr(begin) + "\n";
}

std::string setup_text(const Report& report) {
  const Record& endpoint = find(report, "endpoint");
  const Record& counters = find(report, "counters");
  std::string text = "  " + endpoint["endpoint"] + " on " + endpoint["interface"] + ", " + endpoint["kind"] +
                     ", open for " + duration_text(endpoint["open_ns"]) + "\n";
  std::string ways = endpoint["link"] + " link, frames of at most " + endpoint["frame_max_bytes"] + " bytes";
  if (!endpoint["why_link"].empty()) ways += " (no better link: " + endpoint["why_link"] + ")";
  ways += endpoint["shm"] == "yes" ? "; shared memory on this node"
                                   : "; no shared memory: " + endpoint["why_no_shm"];
  text += paragraph(ways);
  std::string counted = "counted:";
  for (const Fact& fact : counters.facts()) {
    if (fact.value != "0") counted += " " + fact.name + " " + fact.value + ",";
  }
  counted.back() = counted.back() == ',' ? '.' : ' ';
  text += paragraph(counted == "counted " ? "counted: nothing yet" : counted);
  std::string options;
  for (const Record& record : report) {
    if (record.kind() == "option" && record["from"] != "default")
      options += " " + record["option"] + "=" + record["value"];
  }
  return options.empty() ? text : text + paragraph("set:" + options);
}

/// In the column of the rail, for a peer on this node: how often large messages are copied.
std::string copies_text(const Record& peer) {
  if (peer["single_copy"].empty()) return "";
  return peer["single_copy"] == "yes" ? "1 copy" : "2 copies";
}

/// Name, round trip and frames in flight of a rail; empty without one.
std::vector<std::string> rail_cells(const Record& rail) {
  if (rail.kind() != "rail") return {"", "", ""};
  const char* const remark = rail["up"] == "no" ? " (down)" : rail["ethertype"] == "yes" ? " (0x88b5)" : "";
  return {rail["interface"] + remark, duration_text(rail["rtt_ns"]),
          rail["in_flight_frames"] + "/" + rail["window_frames"]};
}

/// The first rail of a peer is in the peer's line, further ones are below it.
void add_peer(const Report& report, std::size_t at, Table& table) {
  const Record& peer = report[at];
  std::vector<std::string> row = {peer["peer"], peer["path"]};
  const bool has_rail = at + 1 < report.size() && report[at + 1].kind() == "rail";
  std::vector<std::string> rail = rail_cells(has_rail ? report[at + 1] : nothing);
  if (!has_rail) rail[0] = copies_text(peer);
  row.insert(row.end(), rail.begin(), rail.end());
  for (const char* fact : {"sent_frames", "lost_frames", "retransmitted_frames"}) row.push_back(peer[fact]);
  row.push_back(size_text(peer["state_bytes"]));
  row.push_back(duration_text(peer["silent_ns"]));
  table.add(std::move(row));
  for (std::size_t i = at + 2; has_rail && i < report.size() && report[i].kind() == "rail"; ++i) {
    row = {" ", " "};
    rail = rail_cells(report[i]);
    row.insert(row.end(), rail.begin(), rail.end());
    row.insert(row.end(), 5, " ");
    table.add(std::move(row));
  }
}

std::string peers_text(const Report& report) {
  Table table(
      {"peer", "path", "rail", ">rtt", ">in flight", ">sent", ">lost", ">again", ">state", ">silent"});
  std::map<std::pair<std::string, std::string>, std::size_t> reasons;
  for (std::size_t i = 0; i < report.size(); ++i) {
    if (report[i].kind() != "peer") continue;
    add_peer(report, i, table);
    ++reasons[{report[i]["path"], report[i]["why"]}];
  }
  if (table.empty()) return "  no peers yet\n";
  std::string text = table.text();
  for (const auto& [reason, peers] : reasons) {
    text += paragraph("why " + reason.first + ": " + reason.second + " (" + std::to_string(peers) +
                      (peers == 1 ? " peer)" : " peers)"));
  }
  return text;
}

/// Operations that have waited longest come first; those that are too new to have an age come last.
std::vector<const Record*> operations_of(const Report& report) {
  std::vector<const Record*> operations;
  for (const Record& record : report) {
    if (record.kind() == "operation") operations.push_back(&record);
  }
  const auto age = [](const Record* record) { return std::strtod((*record)["age_ns"].c_str(), nullptr); };
  std::stable_sort(operations.begin(), operations.end(),
                   [&](const Record* a, const Record* b) { return age(a) > age(b); });
  return operations;
}

std::string operations_text(const Report& report) {
  Table table({"under way", "peer", ">bytes", ">done", ">tag", ">age", "waits for the peer"});
  for (const Record* each : operations_of(report)) {
    const Record& operation = *each;
    const std::string age = operation["age_ns"].empty() ? "new" : duration_text(operation["age_ns"]);
    table.add({operation["operation"], operation["peer"], operation["bytes"], operation["done_bytes"],
               operation["tag"], age, operation["waits_for"]});
  }
  return table.empty() ? "" : table.text();
}

const Record& peer_record(const Report& report, const std::string& name) {
  for (const Record& record : report) {
    if (record.kind() == "peer" && record["peer"] == name) return record;
  }
  return nothing;
}

/// What else is known of the peer that may be the reason.
std::string hints_text(const Record& peer) {
  constexpr double kLongNs = 1e9;
  std::string hints;
  if (peer["path"] == "none") hints += "; it is not reached: " + peer["why"];
  if (std::strtod(peer["silent_ns"].c_str(), nullptr) >= kLongNs)
    hints += "; it has been silent for " + duration_text(peer["silent_ns"]);
  if (peer["unread"] == "yes") hints += "; it has not read what is in its ring";
  if (!peer["unexpected_messages"].empty() && peer["unexpected_messages"] != "0")
    hints += "; " + peer["unexpected_messages"] + " messages of it wait here for a receive that matches them";
  return hints;
}

/// The sentence of --why. Buffers for many messages wait as long as the program runs: they count only where nothing
/// else does.
std::string why_text(const EndpointReport& answer) {
  const Record& endpoint = find(answer.report, "endpoint");
  const std::vector<const Record*> operations = operations_of(answer.report);
  const std::string unexpected = endpoint["unexpected_messages"];
  if (operations.empty()) {
    return endpoint["endpoint"] + " waits for no peer: nothing is under way" +
           (unexpected == "0" || unexpected.empty() ? "" : ", and " + unexpected + " messages wait for a receive") + ".\n";
  }
  const auto real = std::find_if(operations.begin(), operations.end(),
                                 [](const Record* each) { return (*each)["operation"] != "buffer"; });
  const Record& oldest = real != operations.end() ? **real : *operations.front();
  const bool any = oldest["peer"] == "any";
  std::string text = endpoint["endpoint"];
  text += oldest["age_ns"].empty() ? " waits for " : " has waited " + duration_text(oldest["age_ns"]) + " for ";
  text += (any ? "any peer " : oldest["peer"] + " ") + oldest["waits_for"];
  text += " (" + oldest["operation"] + " of " + oldest["bytes"] + " bytes";
  if (oldest["done_bytes"] != "0") text += ", " + oldest["done_bytes"] + " done";
  if (!oldest["tag"].empty()) text += ", tag " + oldest["tag"];
  text += ")";
  if (any && unexpected != "0") text += "; " + unexpected + " messages wait here for a receive that matches them";
  if (!any) text += hints_text(peer_record(answer.report, oldest["peer"]));
  if (operations.size() > 1) text += "; " + std::to_string(operations.size() - 1) + " more operations are under way";
  return text + ".\n";
}

std::string process_title(const EndpointReport& answer) {
  if (answer.process == 0) return "\nA process of another namespace\n";
  return "\nProcess " + std::to_string(answer.process) + " " + answer.command + "\n";
}

std::string endpoint_json(const EndpointReport& answer) {
  if (!answer.trouble.empty()) {
    Record name("endpoint");
    name.text("endpoint", answer.endpoint);
    Record trouble("trouble");
    trouble.text("trouble", answer.trouble);
    return "{\"endpoint\": {" + json_facts(name) + "}, " + json_facts(trouble) + "}";
  }
  return "{" + json_members(answer.report) + "}";
}

}  // namespace

std::string endpoints_text(const EndpointReports& answers, bool operations) {
  std::string text;
  const EndpointReport* before = nullptr;
  for (const EndpointReport& answer : answers.answers) {
    if (before == nullptr || before->process != answer.process) text += process_title(answer);
    before = &answer;
    if (answer.trouble.empty()) {
      text += setup_text(answer.report) + peers_text(answer.report);
      if (operations) text += operations_text(answer.report);
    } else {
      text += "  " + answer.endpoint + ": " + answer.trouble + "\n";
    }
  }
  if (answers.answers.empty()) text = "\nNo endpoints of this user run here\n";
  if (answers.foreign != 0) {
    text += "\n" + std::to_string(answers.foreign) + " endpoints of other users, which only root may query\n";
  }
  return text;
}

std::string reasons_text(const EndpointReports& answers) {
  std::string text;
  for (const EndpointReport& answer : answers.answers) {
    text += "Process " + std::to_string(answer.process) + " " + answer.command + ": ";
    text += answer.trouble.empty() ? why_text(answer) : answer.endpoint + ": " + answer.trouble + "\n";
  }
  return text.empty() ? "No endpoints of this user run here\n" : text;
}

std::string endpoints_json(const EndpointReports& answers) {
  std::string members = "\"foreign_endpoints\": " + std::to_string(answers.foreign) + ",\n\"processes\": [";
  const EndpointReport* before = nullptr;
  for (const EndpointReport& answer : answers.answers) {
    if (before != nullptr && before->process == answer.process) {
      members += ",\n" + endpoint_json(answer);
    } else {
      if (before != nullptr) members += "]},";
      Record process("process");
      process.number("pid", static_cast<std::uint64_t>(answer.process)).text("command", answer.command);
      members += "\n{" + json_facts(process) + ", \"endpoints\": [\n" + endpoint_json(answer);
    }
    before = &answer;
  }
  return members + (before != nullptr ? "]}]" : "]");
}

}  // namespace cluster::info

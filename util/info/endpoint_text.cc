#include "endpoint_text.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <utility>
#include <vector>

#include "json.h"
#include "report_words.h"
#include "text_table.h"
#include "why_text.h"

namespace cluster::info {
namespace {

/// clusterd reads twice as much.
constexpr std::size_t kJsonBytesMax = 8u << 20;

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

std::string paragraph(const std::string& text) {
  // Lines have at most 100 characters; continuation lines begin with four blanks.
  constexpr std::size_t kParagraphMax = 96;
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

/// Describes the device that reads what is long.
std::string reader_text(const Record& reader) {
  const auto mib = [&](const char* fact) { return std::to_string(std::stoull(reader[fact]) >> 20) + " MiB"; };
  std::string text = reader["device"] + " reads what is long over " + reader["queue_pairs"] + " of at most " +
                     reader["queue_pairs_max"] + " queue pairs; it has " + reader["registrations"] +
                     " registrations of memory (" + mib("registered_bytes") + "), found " + reader["hits"] +
                     ", made " + reader["misses"];
  if (!reader["keeps_nothing_because"].empty())
    return text + ", and keeps none: " + reader["keeps_nothing_because"];
  return text + ", gave up " + reader["dropped"] + " for memory that had changed, and keeps at most " +
         mib("registered_bytes_max");
}

std::string setup_text(const Report& report) {
  const Record& endpoint = find(report, "endpoint");
  const Record& counters = find(report, "counters");
  std::string text = "  " + endpoint["endpoint"] + " on " + endpoint["interface"] + ", " + endpoint["kind"] +
                     ", open for " + duration_text(endpoint["open_ns"]) + "\n";
  std::string ways = endpoint["link"] + " link, frames of at most " + endpoint["frame_max_bytes"] + " bytes";
  if (!endpoint["why_link"].empty()) ways += " (no better link: " + endpoint["why_link"] + ")";
  if (!endpoint["rings"].empty()) {
    ways += "; " + endpoint["rings_endpoints"] + " endpoints of this user have " + endpoint["rings"] +
            " receive rings on " + endpoint["interface"] + ", in " +
            std::to_string(std::stoull(endpoint["rings_bytes"]) >> 20) + " MiB";
  }
  ways += endpoint["shm"] == "yes" ? "; shared memory on this node"
                                   : "; no shared memory: " + endpoint["why_no_shm"];
  for (const Record& record : report) {
    if (record.kind() == "device") ways += "; verbs " + record["text"] + ", " + record["state"];
    if (record.kind() == "reader") ways += "; " + reader_text(record);
  }
  text += paragraph(ways);
  std::string totals = "counted:";
  for (const Fact& fact : counters.facts()) {
    if (fact.value != "0") totals += " " + fact.name + " " + fact.value + ",";
  }
  totals.back() = totals.back() == ',' ? '.' : ' ';
  text += paragraph(totals == "counted " ? "counted: nothing yet" : totals);
  std::string options;
  for (const Record& record : report) {
    if (record.kind() == "option" && record["from"] != "default")
      options += " " + record["option"] + "=" + record["value"];
  }
  return options.empty() ? text : text + paragraph("set:" + options);
}

/// For a peer on this node, the column of the rail shows whether a large message is copied once or twice.
std::string copies_text(const Record& peer) {
  if (peer["single_copy"].empty()) return "";
  return peer["single_copy"] == "yes" ? "1 copy" : "2 copies";
}

/// Name, round trip and frames in flight of a rail; empty without one.
std::vector<std::string> rail_cells(const Record& rail) {
  if (rail.kind() != "rail") return {"", "", ""};
  const std::string relay = rail["relay"].empty() ? "" : " (relay " + rail["relay"] + ")";
  const std::string remark = rail["up"] == "no"           ? " (down)"
                             : !relay.empty()             ? relay
                             : rail["ethertype"] == "yes" ? " (0x88b5)"
                                                          : "";
  return {rail["interface"] + remark, duration_text(rail["rtt_ns"]),
          rail["in_flight_frames"] + "/" + rail["window_frames"]};
}

/// The first rail of a peer is in the peer's line, further ones are below it.
void add_peer(const Report& report, std::size_t at, Table& table) {
  const Record& peer = report[at];
  std::vector<std::string> row = {peer["peer"], peer["lost"].empty() ? peer["path"] : "lost"};
  const bool has_rail = at + 1 < report.size() && report[at + 1].kind() == "rail";
  std::vector<std::string> rail = rail_cells(has_rail ? report[at + 1] : find(report, ""));
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

constexpr std::size_t kLossesMax = 8;

std::string peers_text(const Report& report) {
  Table table(
      {"peer", "path", "rail", ">rtt", ">in flight", ">sent", ">lost", ">retrans", ">state", ">silent"});
  std::map<std::pair<std::string, std::string>, std::size_t> reasons;
  std::string losses;
  std::size_t lost = 0;
  for (std::size_t i = 0; i < report.size(); ++i) {
    if (report[i].kind() != "peer") continue;
    add_peer(report, i, table);
    if (report[i]["lost"].empty()) {
      ++reasons[{report[i]["path"], report[i]["why"]}];
    } else if (++lost <= kLossesMax) {
      losses += paragraph(report[i]["peer"] + " " + loss_text(report[i]));
    }
  }
  if (table.empty()) return "  no peers yet\n";
  std::string text = table.text();
  for (const auto& [reason, peers] : reasons) {
    text += paragraph("why " + reason.first + ": " + reason.second + " (" + std::to_string(peers) +
                      (peers == 1 ? " peer)" : " peers)"));
  }
  text += losses;
  if (lost > kLossesMax) text += paragraph(counted(lost - kLossesMax, "more peer") + " lost");
  return text;
}

/// Operations that differ only in their age share one line, with the age of the oldest.
std::string operations_text(const Report& report) {
  std::vector<std::vector<std::string>> rows;
  std::map<std::vector<std::string>, std::size_t> seen;
  for (const Record* each : operations_of(report)) {
    const Record& operation = *each;
    const std::string age = operation["age_ns"].empty() ? "new" : duration_text(operation["age_ns"]);
    std::vector<std::string> row = {operation["operation"],  operation["peer"], operation["bytes"],
                                    operation["done_bytes"], operation["tag"],  operation["waits_for"]};
    const bool first = ++seen[row] == 1;
    if (!first) continue;
    rows.push_back(row);
    rows.back().insert(rows.back().end() - 1, age);
  }
  Table table({"in progress", "peer", ">bytes", ">done", ">tag", ">age", "waits for the peer"});
  for (std::vector<std::string>& row : rows) {
    std::vector<std::string> kind = row;
    kind.erase(kind.end() - 2);
    const std::size_t count = seen[kind];
    if (count > 1) row[0] = std::to_string(count) + " x " + row[0];
    table.add(std::move(row));
  }
  return table.empty() ? "" : table.text();
}

std::string process_title(const EndpointReport& answer) {
  if (answer.process == 0) return "\nA process of another namespace\n";
  return "\nProcess " + std::to_string(answer.process) + " " + answer.command + "\n";
}

std::string json_of(const EndpointReport& answer) {
  if (!answer.json.empty()) return answer.json;
  if (!answer.trouble.empty()) {
    Record name("endpoint");
    name.text("endpoint", answer.endpoint);
    Record trouble("trouble");
    trouble.text("trouble", answer.trouble);
    return "{\"endpoint\": {" + json_facts(name) + "}, " + json_facts(trouble) + "}";
  }
  return "{" + json_members(answer.report) + "}";
}

/// A further member of the JSON of a process; empty if its launcher was not requested or is unknown.
std::string launcher_json(const Launcher& launcher) {
  if (launcher.process == 0) return "";
  Record facts("launcher");
  facts.number("pid", static_cast<std::uint64_t>(launcher.process)).text("command", launcher.command);
  std::string silent;
  for (const SilentConnection& each : launcher.silent) {
    Record connection("connection");
    connection.text("from", each.from).text("to", each.to).number("retransmissions", each.retransmissions);
    silent += (silent.empty() ? "{" : ", {") + json_facts(connection) + "}";
  }
  return ", \"launcher\": {" + json_facts(facts) + ", \"silent\": [" + silent + "]}";
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
  if (answers.left_out != 0) {
    text += "\n" + std::to_string(answers.left_out) +
            " endpoints left out: their users have too many (--pid shows those of one process)\n";
  }
  return text;
}

std::string reasons_text(const EndpointReports& answers) {
  std::string text;
  for (const EndpointReport& answer : answers.answers) {
    text += "Process " + std::to_string(answer.process) + " " + answer.command + ": ";
    text += answer.trouble.empty() ? why_text(answer, answers.neighbours)
                                   : answer.endpoint + ": " + answer.trouble + "\n";
  }
  return text.empty() ? "No endpoints of this user run here\n" : text + launchers_text(answers.answers);
}

void keep_as_json(EndpointReport& answer) {
  answer.json = json_of(answer);
  answer.report = {};
}

void shorten(EndpointReports& answers) {
  std::map<unsigned, std::size_t> said;
  std::size_t total = 0;
  for (const EndpointReport& answer : answers.answers) {
    said[answer.user] += answer.json.size();
    total += answer.json.size();
  }
  while (total > kJsonBytesMax) {
    const auto most = std::max_element(said.begin(), said.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    for (EndpointReport& answer : answers.answers) {
      if (answer.user != most->first) continue;
      answer.json.clear();
      answer.trouble =
          "the reports of its user are too long to be shown for everybody: name the process with --pid";
    }
    total -= most->second;
    said.erase(most);
  }
}

std::string endpoints_json(const EndpointReports& answers) {
  std::string members = "\"foreign_endpoints\": " + std::to_string(answers.foreign) + ",\n";
  if (answers.left_out != 0) members += "\"left_out_endpoints\": " + std::to_string(answers.left_out) + ",\n";
  members += "\"processes\": [";
  const EndpointReport* before = nullptr;
  for (const EndpointReport& answer : answers.answers) {
    if (before != nullptr && before->process == answer.process) {
      members += ",\n" + json_of(answer);
    } else {
      if (before != nullptr) members += "]},";
      Record process("process");
      process.number("pid", static_cast<std::uint64_t>(answer.process)).text("command", answer.command);
      members += "\n{" + json_facts(process) + launcher_json(answer.launcher) + ", \"endpoints\": [\n" +
                 json_of(answer);
    }
    before = &answer;
  }
  return members + (before != nullptr ? "]}]" : "]");
}

}  // namespace cluster::info

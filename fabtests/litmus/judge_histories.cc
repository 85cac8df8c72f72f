// Judges histories of words that another program wrote down (fabtests/mpi/mpi_histories.c says how).
// usage: judge_histories FILE...
// Exit status: 0 one order explains each word, 1 it does not, 2 there was nothing to judge or a line was not understood.
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "sim/linearizability.h"

namespace {

using cluster::sim::Linearizability;
using cluster::sim::WordOperation;
using Kind = WordOperation::Kind;

const std::map<std::string, Kind> kKinds{{"read", Kind::read},
                                         {"write", Kind::write},
                                         {"sum", Kind::sum},
                                         {"bxor", Kind::bxor},
                                         {"swap", Kind::swap_if_equal}};

struct Word {
  unsigned bits = 64;
  std::vector<WordOperation> history;
  std::vector<std::uint64_t> last;
};

using Words = std::map<std::string, Word>;  ///< by place and word

bool add_operation(std::istringstream& fields, Words& words) {
  std::string place, word, kind, fetched;
  unsigned bits = 64;
  WordOperation operation;
  fields >> place >> operation.origin >> word >> bits >> kind >> operation.operand >> operation.comparand >>
      fetched >> operation.began >> operation.ended;
  if (!fields || !kKinds.contains(kind)) return false;
  operation.kind = kKinds.at(kind);
  if (fetched != "-") operation.fetched = std::stoull(fetched);
  Word& at = words[place + ", word " + word];
  at.bits = bits;
  operation.number = at.history.size() + 1;
  // Accumulates of one origin on one word keep their order; other operations of one origin do not overlap.
  for (std::uint32_t i = 0; i < at.history.size(); ++i) {
    if (at.history[i].origin == operation.origin) operation.after.push_back(i);
  }
  at.history.push_back(operation);
  return true;
}

bool add_line(const std::string& line, Words& words) {
  std::istringstream fields(line);
  std::string what, place, word;
  fields >> what;
  if (what == "op") return add_operation(fields, words);
  unsigned bits = 64;
  std::uint64_t value = 0;
  if (what != "end" || !(fields >> place >> word >> bits >> value)) return false;
  Word& at = words[place + ", word " + word];
  at.bits = bits;
  at.last = {value};
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t operations = 0, wrong = 0;
  Words words;
  for (int i = 1; i < argc; ++i) {
    std::ifstream file(argv[i]);
    for (std::string line; std::getline(file, line);) {
      if (add_line(line, words)) continue;
      std::printf("%s: not understood: %s\n", argv[i], line.c_str());
      return 2;
    }
  }
  for (const auto& [place, word] : words) {
    operations += word.history.size();
    const Linearizability judge(std::vector<Linearizability::Word>{{.bits = word.bits}});
    if (!word.last.empty() && judge.judge(word.history, word.last) == Linearizability::Verdict::explained)
      continue;
    if (++wrong <= 5)
      std::printf("%s: no order explains\n%s", place.c_str(), judge.text(word.history, word.last).c_str());
  }
  std::printf("%zu operations on %zu words, %zu words that no order explains\n", operations, words.size(),
              wrong);
  return operations == 0 ? 2 : wrong == 0 ? 0 : 1;
}

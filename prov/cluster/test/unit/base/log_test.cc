// Log lines: formatting, levels, and lines that are too long; also the counters and faults that such lines
// print.
#include "base/log.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "base/counters.h"
#include "base/status.h"

namespace cluster {
namespace {

class Recorder final : public Log {
 public:
  explicit Recorder(LogLevel most) : most_(most) {}
  bool enabled(LogLevel level) const override { return level <= most_; }
  void write(LogLevel level, const char* line) override { lines.emplace_back(level, line); }

  std::vector<std::pair<LogLevel, std::string>> lines;

 private:
  LogLevel most_;
};

TEST(Log, FormatsAtEachLevel) {
  Recorder log(LogLevel::info);
  log.warn("port %d of %s", 9228, "node1");
  log.info("%s%5.1f", "path", 2.25);
  const std::vector<std::pair<LogLevel, std::string>> expected = {{LogLevel::warn, "port 9228 of node1"},
                                                                  {LogLevel::info, "path  2.2"}};
  EXPECT_EQ(log.lines, expected);
}

TEST(Log, KeepsSilentBelowTheLevel) {
  Recorder log(LogLevel::warn);
  log.info("no");
  log.warn("yes");
  ASSERT_EQ(log.lines.size(), 1u);
  EXPECT_EQ(log.lines[0].second, "yes");
}

TEST(Log, CutsLongLines) {
  Recorder log(LogLevel::warn);
  const std::string word(5000, 'x');
  log.warn("begin %s", word.c_str());
  ASSERT_EQ(log.lines.size(), 1u);
  EXPECT_LT(log.lines[0].second.size(), 1000u);
  EXPECT_EQ(log.lines[0].second.substr(0, 9), "begin xxx");
}

TEST(Status, EachHasWordsOfItsOwn) {
  std::set<std::string> words;
  for (int i = 0; i <= static_cast<int>(Status::overrun); ++i) words.insert(describe(static_cast<Status>(i)));
  EXPECT_EQ(words.size(), static_cast<std::size_t>(Status::overrun) + 1);
  EXPECT_EQ(words.count("unknown status"), 0u);
}

TEST(Counters, EachVisitsEveryRowOnce) {
  Counters counters;
  counters.frames_sent = 3;
  std::set<std::string> names;
  std::uint64_t sum = 0;
  counters.each([&](const char* name, std::uint64_t value, const char* help) {
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_NE(std::string(help), "");
    sum += value;
  });
  EXPECT_EQ(names.size() * sizeof(std::uint64_t), sizeof(Counters));
  EXPECT_EQ(sum, 3u);
}

}  // namespace
}  // namespace cluster

// What a match costs with so many receives posted or messages stored. Prints nanoseconds per match, the
// worst order for a walk (last come, first served): 1, 100, 10,000 entries, by exact tag, from any source,
// under a mask.
#include "protocol/match_queue.h"

#include <chrono>
#include <cstdio>
#include <memory>
#include <vector>

#include "protocol/channel.h"

namespace {

using namespace cluster::protocol;

constexpr std::size_t kMatches = 200'000;

struct Way {
  const char* name;
  bool directed;
  std::uint64_t ignore;
};

double nanoseconds_each(std::chrono::steady_clock::time_point begin, std::size_t count) {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count() /
         static_cast<double>(count);
}

double posted(const Way& way, std::size_t entries) {
  Channel sender;
  MatchQueue queue;
  std::vector<RecvRequest> receives(entries);
  const auto post = [&](RecvRequest& receive, std::uint64_t tag) {
    receive.from = way.directed ? &sender : nullptr;
    receive.tag = tag << 8;
    receive.ignore = way.ignore;
    queue.post(receive);
  };
  for (std::size_t i = 0; i < entries; ++i) post(receives[i], i);
  const auto begin = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < kMatches; ++i) {
    const std::uint64_t tag = entries - 1 - i % entries;
    post(*queue.match(&sender, tag << 8), tag);
  }
  return nanoseconds_each(begin, kMatches);
}

double stored(const Way& way, std::size_t entries) {
  Channel sender;
  MatchQueue queue;
  std::vector<UnexpectedMessage> messages(entries);
  const auto store = [&](UnexpectedMessage& message, std::uint64_t tag) {
    message.channel = &sender;
    message.tag = tag << 8;
    queue.store(message);
  };
  for (std::size_t i = 0; i < entries; ++i) store(messages[i], i);
  const auto begin = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < kMatches; ++i) {
    const std::uint64_t tag = entries - 1 - i % entries;
    UnexpectedMessage* message = queue.find(way.directed ? &sender : nullptr, tag << 8, way.ignore);
    queue.drop(*message);
    store(*message, tag);
  }
  return nanoseconds_each(begin, kMatches);
}

}  // namespace

int main() {
  const Way ways[] = {{"exact", true, 0}, {"any source", false, 0}, {"mask", true, 0xff}};
  std::printf("%-12s %10s %12s %12s\n", "way", "entries", "posted ns", "stored ns");
  for (const Way& way : ways) {
    for (const std::size_t entries : {1, 100, 10'000}) {
      std::printf("%-12s %10zu %12.1f %12.1f\n", way.name, entries, posted(way, entries),
                  stored(way, entries));
    }
  }
}

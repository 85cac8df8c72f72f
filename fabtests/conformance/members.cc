#include "members.h"

#include <algorithm>

namespace conformance {

using std::chrono::seconds;

Options with_collectives() {
  Options options;
  options.caps |= FI_COLLECTIVE;
  return options;
}

Members::Members(Team& team, std::vector<fi_addr_t> addresses)
    : team_(team), addresses_(std::move(addresses)) {
  fi_av_set_attr attributes{};
  attributes.count = addresses_.size();
  attributes.start_addr = attributes.end_addr = FI_ADDR_NOTAVAIL;
  fid_av_set* set = nullptr;
  EXPECT_EQ(fi_av_set(team.endpoint.domain().av(), &attributes, &set, nullptr), 0);
  set_.reset(set);
  for (const fi_addr_t address : addresses_) EXPECT_EQ(fi_av_set_insert(set, address), 0);
  fi_addr_t name = FI_ADDR_NOTAVAIL;
  EXPECT_EQ(fi_av_set_addr(set, &name), 0);
  fid_mc* mc = nullptr;
  EXPECT_EQ(fi_join_collective(team.endpoint.ep(), name, set, 0, &mc, this), 0);
  mc_.reset(mc);
}

Members::~Members() {
  if (mc_ == nullptr) return;
  // A peer may still read a buffer of an operation that was aborted, never for long.
  const Deadline deadline(seconds(20));
  int left = -FI_EBUSY;
  while (left == -FI_EBUSY && !deadline.passed()) {
    left = fi_close(&mc_->fid);
    team_.endpoint.progress();
  }
  EXPECT_EQ(left, 0);
  static_cast<void>(mc_.release());
}

int Members::joined() {
  std::uint32_t event = 0;
  fi_eq_entry entry{};
  for (const Deadline deadline(seconds(30)); !deadline.passed(); yield_processor()) {
    const ssize_t got = fi_eq_read(team_.endpoint.eq(), &event, &entry, sizeof entry, 0);
    if (got == -FI_EAVAIL) {
      fi_eq_err_entry error{};
      EXPECT_EQ(fi_eq_readerr(team_.endpoint.eq(), &error, 0), static_cast<ssize_t>(sizeof error));
      EXPECT_EQ(error.fid, &mc_->fid);
      return error.err;
    }
    if (got == -FI_EAGAIN || event != FI_JOIN_COMPLETE) continue;
    EXPECT_EQ(got, static_cast<ssize_t>(sizeof entry));
    EXPECT_EQ(entry.fid, &mc_->fid);
    EXPECT_EQ(entry.context, this);
    return 0;
  }
  return FI_ETIMEDOUT;
}

std::size_t Members::self() const {
  const fi_addr_t own = team_.peers[static_cast<std::size_t>(team_.side.index())];
  return static_cast<std::size_t>(std::find(addresses_.begin(), addresses_.end(), own) - addresses_.begin());
}

void Members::run(const std::function<ssize_t(void* context)>& post) {
  int mark = 0;
  team_.endpoint.must([&] { return post(&mark); });
  const Outcome outcome = team_.endpoint.finish(&mark);
  EXPECT_EQ(outcome.entry.flags, FI_COLLECTIVE);
}

Numbers numbers(std::size_t member, std::size_t count) {
  Numbers values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = static_cast<std::int64_t>(member * 1'000'003 + i * 7 + 1);
  return values;
}

Numbers sum_of(std::size_t members, std::size_t count) {
  Numbers values(count);
  for (std::size_t member = 0; member < members; ++member) {
    const Numbers block = numbers(member, count);
    for (std::size_t i = 0; i < count; ++i) values[i] += block[i];
  }
  return values;
}

namespace {

/// Blocks of all members behind each other.
Numbers all_numbers(std::size_t members, std::size_t count) {
  Numbers values;
  for (std::size_t member = 0; member < members; ++member) {
    const Numbers block = numbers(member, count);
    values.insert(values.end(), block.begin(), block.end());
  }
  return values;
}

Numbers part(const Numbers& values, std::size_t index, std::size_t count) {
  const auto begin = values.begin() + static_cast<std::ptrdiff_t>(index * count);
  return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}

void allreduce(Members& members, std::size_t count) {
  const Numbers own = numbers(members.self(), count);
  Numbers result(count);
  members.run([&](void* context) {
    return fi_allreduce(members.ep(), own.data(), count, nullptr, result.data(), nullptr, members.coll_addr(),
                        FI_INT64, FI_SUM, 0, context);
  });
  EXPECT_EQ(result, sum_of(members.size(), count));
}

void reduce(Members& members, std::size_t root, std::size_t count) {
  const Numbers own = numbers(members.self(), count);
  Numbers result(count);
  members.run([&](void* context) {
    return fi_reduce(members.ep(), own.data(), count, nullptr, result.data(), nullptr, members.coll_addr(),
                     members.address(root), FI_INT64, FI_SUM, 0, context);
  });
  EXPECT_EQ(result, members.self() == root ? sum_of(members.size(), count) : Numbers(count));
}

void allgather(Members& members, std::size_t count) {
  const Numbers own = numbers(members.self(), count);
  Numbers result(members.size() * count);
  members.run([&](void* context) {
    return fi_allgather(members.ep(), own.data(), count, nullptr, result.data(), nullptr, members.coll_addr(),
                        FI_INT64, 0, context);
  });
  EXPECT_EQ(result, all_numbers(members.size(), count));
}

void alltoall(Members& members, std::size_t count) {
  const Numbers own = numbers(members.self(), members.size() * count);
  Numbers result(own.size());
  members.run([&](void* context) {
    return fi_alltoall(members.ep(), own.data(), count, nullptr, result.data(), nullptr, members.coll_addr(),
                       FI_INT64, 0, context);
  });
  for (std::size_t from = 0; from < members.size(); ++from) {
    const Numbers sent = numbers(from, members.size() * count);
    EXPECT_EQ(part(result, from, count), part(sent, members.self(), count)) << "from " << from;
  }
}

void reduce_scatter(Members& members, std::size_t count) {
  const Numbers own = numbers(members.self(), members.size() * count);
  Numbers result(count);
  members.run([&](void* context) {
    return fi_reduce_scatter(members.ep(), own.data(), count, nullptr, result.data(), nullptr,
                             members.coll_addr(), FI_INT64, FI_SUM, 0, context);
  });
  EXPECT_EQ(result, part(sum_of(members.size(), members.size() * count), members.self(), count));
}

void scatter_and_gather(Members& members, std::size_t root, std::size_t count) {
  const bool is_root = members.self() == root;
  const Numbers all = all_numbers(members.size(), count);
  Numbers block(count);
  members.run([&](void* context) {
    return fi_scatter(members.ep(), is_root ? all.data() : nullptr, count, nullptr, block.data(), nullptr,
                      members.coll_addr(), members.address(root), FI_INT64, 0, context);
  });
  EXPECT_EQ(block, numbers(members.self(), count));
  Numbers gathered(is_root ? all.size() : 0);
  members.run([&](void* context) {
    return fi_gather(members.ep(), block.data(), count, nullptr, gathered.data(), nullptr,
                     members.coll_addr(), members.address(root), FI_INT64, 0, context);
  });
  EXPECT_EQ(gathered, is_root ? all : Numbers{});
}

}  // namespace

void barrier(Members& members) {
  members.run([&](void* context) { return fi_barrier(members.ep(), members.coll_addr(), context); });
}

void broadcast(Members& members, std::size_t root, std::size_t count) {
  Numbers values = members.self() == root ? numbers(root, count) : Numbers(count);
  members.run([&](void* context) {
    return fi_broadcast(members.ep(), values.data(), count, nullptr, members.coll_addr(),
                        members.address(root), FI_INT64, 0, context);
  });
  EXPECT_EQ(values, numbers(root, count));
}

void every_operation(Members& members, std::size_t count) {
  barrier(members);
  for (std::size_t root = 0; root < members.size(); ++root) {
    broadcast(members, root, count);
    reduce(members, root, count);
    scatter_and_gather(members, root, count);
  }
  allreduce(members, count);
  allgather(members, count);
  alltoall(members, count);
  reduce_scatter(members, count);
}

}  // namespace conformance

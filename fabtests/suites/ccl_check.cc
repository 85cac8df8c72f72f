// Every collective of oneCCL on processors, with results that are checked element by element: from 1 element to some
// megabytes, so that each passes through whatever oneCCL does for short and for long ones. oneccl.py builds and starts it.
//
//   ccl_check RANK SIZE FILE      FILE: where rank 0 leaves the address by which the others find it
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <oneapi/ccl.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using Numbers = std::vector<float>;

constexpr std::size_t kCounts[] = {1, 100, 4096, 50'000, 400'000};
constexpr useconds_t kLookAgain = 10'000;

/// What element `at` of rank `rank` is for rank `to`: small whole numbers, whose sums are exact.
float element(int rank, int to, std::size_t at) {
  return static_cast<float>(rank + 1 + 3 * to) + static_cast<float>(at % 13);
}

class Check {
 public:
  Check(ccl::communicator& all) : all_(all), rank_(all.rank()), size_(all.size()) {}

  void run(std::size_t count) {
    allreduce(count);
    reduce(count);
    broadcast(count);
    allgatherv(count);
    alltoall(count);
    reduce_scatter(count);
    ring(count);
    ccl::barrier(all_).wait();
  }

 private:
  /// `count` elements for each of `parts` ranks.
  Numbers mine(std::size_t count, int parts) const {
    Numbers numbers;
    for (int to = 0; to < parts; ++to)
      for (std::size_t at = 0; at < count; ++at) numbers.push_back(element(rank_, to, at));
    return numbers;
  }
  float sum(int to, std::size_t at) const {
    float total = 0;
    for (int rank = 0; rank < size_; ++rank) total += element(rank, to, at);
    return total;
  }
  template <typename Expected>
  void expect(const char* what, const Numbers& got, Expected expected) const {
    for (std::size_t at = 0; at < got.size(); ++at)
      if (got[at] != expected(at))
        throw std::runtime_error(std::string(what) + " of " + std::to_string(got.size()) + ": element " +
                                 std::to_string(at) + " is " + std::to_string(got[at]) + ", not " +
                                 std::to_string(expected(at)));
  }

  void allreduce(std::size_t count) {
    const Numbers in = mine(count, 1);
    Numbers out(count);
    ccl::allreduce(in.data(), out.data(), count, ccl::reduction::sum, all_).wait();
    expect("allreduce", out, [&](std::size_t at) { return sum(0, at); });
  }
  void reduce(std::size_t count) {
    const int root = size_ - 1;
    const Numbers in = mine(count, 1);
    Numbers out(count);
    ccl::reduce(in.data(), out.data(), count, ccl::reduction::sum, root, all_).wait();
    if (rank_ == root) expect("reduce", out, [&](std::size_t at) { return sum(0, at); });
  }
  void broadcast(std::size_t count) {
    Numbers both = mine(count, 1);
    ccl::broadcast(both.data(), count, 0, all_).wait();
    expect("broadcast", both, [](std::size_t at) { return element(0, 0, at); });
  }
  void allgatherv(std::size_t count) {
    const std::vector<std::size_t> counts(static_cast<std::size_t>(size_), count);
    const Numbers in = mine(count, 1);
    Numbers out(count * counts.size());
    ccl::allgatherv(in.data(), count, out.data(), counts, all_).wait();
    expect("allgatherv", out,
           [&](std::size_t at) { return element(static_cast<int>(at / count), 0, at % count); });
  }
  void alltoall(std::size_t count) {
    const Numbers in = mine(count, size_);
    Numbers out(in.size());
    ccl::alltoall(in.data(), out.data(), count, all_).wait();
    expect("alltoall", out,
           [&](std::size_t at) { return element(static_cast<int>(at / count), rank_, at % count); });
  }
  void reduce_scatter(std::size_t count) {
    const Numbers in = mine(count, size_);
    Numbers out(count);
    ccl::reduce_scatter(in.data(), out.data(), count, ccl::reduction::sum, all_).wait();
    expect("reduce_scatter", out, [&](std::size_t at) { return sum(rank_, at); });
  }
  /// To the next rank and from the one before; every other rank receives first.
  void ring(std::size_t count) {
    const int next = (rank_ + 1) % size_;
    const int before = (rank_ + size_ - 1) % size_;
    Numbers in = mine(count, 1);
    Numbers out(count);
    const auto send = [&] { ccl::send(in.data(), count, next, all_).wait(); };
    const auto receive = [&] { ccl::recv(out.data(), count, before, all_).wait(); };
    if (rank_ % 2 == 0) send();
    receive();
    if (rank_ % 2 != 0) send();
    expect("send and receive", out, [&](std::size_t at) { return element(before, 0, at); });
  }

  ccl::communicator& all_;
  int rank_;
  int size_;
};

/// The store by which ranks meet: rank 0 makes it and leaves its address in a file that appears whole.
ccl::shared_ptr_class<ccl::kvs> meet(int rank, const std::string& file) {
  if (rank == 0) {
    const auto store = ccl::create_main_kvs();
    const auto address = store->get_address();
    std::ofstream(file + ".new", std::ios::binary)
        .write(address.data(), static_cast<std::streamsize>(address.size()));
    std::filesystem::rename(file + ".new", file);
    return store;
  }
  while (!std::filesystem::exists(file)) usleep(kLookAgain);
  ccl::kvs::address_type address;
  std::ifstream(file, std::ios::binary).read(address.data(), static_cast<std::streamsize>(address.size()));
  return ccl::create_kvs(address);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  try {
    ccl::init();
    const auto store = meet(std::atoi(argv[1]), argv[3]);
    auto all = ccl::create_communicator(std::atoi(argv[2]), std::atoi(argv[1]), store);
    Check check(all);
    for (const std::size_t count : kCounts) check.run(count);
    std::puts("PASS ccl_check");
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "FAIL ccl_check: %s\n", error.what());
    return 1;
  }
}

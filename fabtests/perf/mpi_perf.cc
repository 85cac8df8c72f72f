// mpi_perf: the same measures between two ranks of an MPI job, and some among all ranks of one, over the
// transport that MPI was configured for. Rank 0 leads and prints, the others follow. Commands travel on separate TCP
// connections, so that they do not disturb the measured transport.
#define OMPI_SKIP_MPICXX  // the C interface only
#include <mpi.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>

#include "measurement.h"
#include "mpi_crowd.h"
#include "processor.h"

namespace {

using namespace perf;

constexpr int kDataTag = 1, kAnswerTag = 2, kPortTag = 3;

struct CommandLine {
  std::vector<std::string> items;
  std::string peer = "127.0.0.1";
  std::vector<int> cpus;
  double milliseconds = 100;
  unsigned limit = 120;
};

/// What a rank does with messages of one size. All of a window use the same buffer, as most programs do.
class Messages {
 public:
  Messages(int rank, const Item& item)
      : peer_(1 - rank),
        bytes_(static_cast<int>(item.bytes)),
        window_(static_cast<int>(item.window)),
        out_(std::max<std::size_t>(item.bytes, 1), 'o'),
        in_(out_.size(), 'i'),
        sends_(item.window),
        receives_(item.window) {}

  void ping() { MPI_Send(out_.data(), bytes_, MPI_BYTE, peer_, kDataTag, MPI_COMM_WORLD); }
  void take() { MPI_Recv(in_.data(), bytes_, MPI_BYTE, peer_, kDataTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE); }
  void answer() { MPI_Send(out_.data(), 1, MPI_BYTE, peer_, kAnswerTag, MPI_COMM_WORLD); }
  void await_answer() {
    MPI_Recv(in_.data(), 1, MPI_BYTE, peer_, kAnswerTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  void post_sends() {
    for (MPI_Request& request : sends_) {
      MPI_Isend(out_.data(), bytes_, MPI_BYTE, peer_, kDataTag, MPI_COMM_WORLD, &request);
    }
  }
  void post_receives() {
    for (MPI_Request& request : receives_) {
      MPI_Irecv(in_.data(), bytes_, MPI_BYTE, peer_, kDataTag, MPI_COMM_WORLD, &request);
    }
  }
  void finish_sends() { MPI_Waitall(window_, sends_.data(), MPI_STATUSES_IGNORE); }
  void finish_receives() { MPI_Waitall(window_, receives_.data(), MPI_STATUSES_IGNORE); }

 private:
  int peer_, bytes_, window_;
  std::vector<char> out_, in_;
  std::vector<MPI_Request> sends_, receives_;
};

using Shared = std::shared_ptr<Messages>;

Benchmark ping_pong(const Shared& messages) {
  Benchmark work;
  work.messages = 2;
  work.lead = [messages](std::uint64_t) {
    messages->ping();
    messages->take();
  };
  work.follow = [messages](std::uint64_t) {
    messages->take();
    messages->ping();
  };
  return work;
}

Benchmark windows(const Shared& messages, unsigned window, Figure figure) {
  Benchmark work;
  work.figure = figure;
  work.messages = window;
  work.lead = [messages](std::uint64_t) {
    messages->post_sends();
    messages->finish_sends();
    messages->await_answer();
  };
  work.follow = [messages](std::uint64_t) {
    messages->post_receives();
    messages->finish_receives();
    messages->answer();
  };
  return work;
}

Benchmark both_ways(const Shared& messages, unsigned window) {
  Benchmark work;
  work.figure = Figure::bytes_per_second;
  work.messages = 2 * window;
  work.lead = work.follow = [messages](std::uint64_t) {
    messages->post_receives();
    messages->post_sends();
    messages->finish_sends();
    messages->finish_receives();
  };
  return work;
}

Benchmark work_for(int rank, const Item& item) {
  const auto messages = std::make_shared<Messages>(rank, item);
  Benchmark work;
  if (item.measure == "latency") {
    work = ping_pong(messages);
  } else if (item.measure == "bandwidth") {
    work = windows(messages, item.window, Figure::bytes_per_second);
  } else if (item.measure == "rate") {
    work = windows(messages, item.window, Figure::messages_per_second);
  } else if (item.measure == "bidirectional") {
    work = both_ways(messages, item.window);
  } else {
    throw std::invalid_argument("there is no measure '" + item.measure + "'");
  }
  work.bytes = work.messages * static_cast<double>(item.bytes);
  return work;
}

/// How a rank is called: the port, and the node, which decides the address.
struct Callee {
  std::uint16_t port;
  char node[MPI_MAX_PROCESSOR_NAME];
};

Callee callee(std::uint16_t port) {
  Callee mine{port, {}};
  int length = 0;
  MPI_Get_processor_name(mine.node, &length);
  return mine;
}

/// Each rank answers the call of rank 0, which learns its port and its node through MPI. `peer` is the
/// address of the other node.
std::vector<ControlConnection> lines_between(int rank, int size, const std::string& peer) {
  std::vector<ControlConnection> lines;
  if (rank != 0) {
    lines.push_back(ControlConnection::answer([](std::uint16_t port) {
      const Callee mine = callee(port);
      MPI_Send(&mine, sizeof mine, MPI_BYTE, 0, kPortTag, MPI_COMM_WORLD);
    }));
  }
  const std::string here = callee(0).node;
  for (int other = 1; rank == 0 && other < size; ++other) {
    Callee theirs{};
    MPI_Recv(&theirs, sizeof theirs, MPI_BYTE, other, kPortTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    lines.push_back(ControlConnection::call(theirs.node == here ? "127.0.0.1" : peer, theirs.port));
  }
  return lines;
}

void keep_going() {
  int arrived = 0;
  MPI_Iprobe(MPI_ANY_SOURCE, kPortTag, MPI_COMM_WORLD, &arrived, MPI_STATUS_IGNORE);
}

void run(const CommandLine& options, int rank, int size) {
  const std::vector<Item> plan = parse_plan(options.items);
  for (const Item& item : plan) {
    if (size != 2 && !is_crowd_measure(item.measure)) {
      throw std::invalid_argument("'" + item.text() + "' needs exactly two ranks");
    }
  }
  MeasurementSettings conduct;
  conduct.seconds = options.milliseconds / 1e3;
  if (options.cpus.size() == 2) {
    const auto own = static_cast<std::size_t>(rank % 2);
    conduct.own_cpu = options.cpus[own];
    conduct.other_cpu = options.cpus[1 - own];
    if (!pin(conduct.own_cpu))
      throw std::invalid_argument("may not run on processor " + std::to_string(conduct.own_cpu));
  }
  conduct.work = [rank](const Item& item) {
    return is_crowd_measure(item.measure) ? crowd_work(item) : work_for(rank, item);
  };
  conduct.progress = keep_going;
  std::vector<ControlConnection> lines = lines_between(rank, size, options.peer);
  if (rank == 0) {
    lead(lines, plan, conduct);
  } else {
    follow(lines.front(), conduct);
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Measures between the two ranks of an MPI job, or among all ranks of one.", "mpi_perf");
  CommandLine options;
  app.add_option("--peer", options.peer,
                 "address of the node of the ranks that are on another one than rank 0")
      ->capture_default_str();
  app.add_option("--cpus", options.cpus, "processors of the even and of the odd ranks")
      ->delimiter(',')
      ->expected(2)
      ->allow_extra_args(false);
  app.add_option("--milliseconds", options.milliseconds, "length of one run")->capture_default_str();
  app.add_option("--limit", options.limit, "give up after so many seconds")->capture_default_str();
  app.add_option(
         "items", options.items,
         "MEASURE:BYTES[:WINDOW]; between two ranks: latency, bandwidth, rate, bidirectional; among any "
         "number, the time of a round: barrier, ring (a message to the next rank and one from the rank "
         "before, at once), alltoall (a block for each rank)")
      ->required();
  CLI11_PARSE(app, argc, argv);
  ::alarm(options.limit);
  MPI_Init(&argc, &argv);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  try {
    if (size < 2) throw std::invalid_argument("needs two ranks or more: mpirun -np 2");
    run(options, rank, size);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "mpi_perf: %s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return 0;
}

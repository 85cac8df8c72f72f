// gauss_perf: one of the two sides of a Gauss elimination with two roundings, over any libfabric provider. A
// side may poll or sleep while it waits; see --help.
#include <gauss_rounded.h>
#include <rdma/fi_tagged.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "endpoints.h"
#include "measurement.h"
#include "processor.h"

namespace {

using namespace perf;

constexpr std::uint64_t kTag = 1;
constexpr int kWarmUpOrder = 16;

struct Side {
  Endpoints& endpoints;
  int rank;
};

void broadcast(void* context, double* message, int count, int root) {
  const Side& own = *static_cast<Side*>(context);
  Endpoints& side = own.endpoints;
  const std::size_t bytes = sizeof(double) * static_cast<std::size_t>(count);
  if (own.rank == root) {
    side.post([&] {
      return fi_tsend(side.ep(0), message, bytes, side.out().descriptor(), side.peer(0), kTag,
                      side.context());
    });
    side.await_sent(1);
  } else {
    side.post([&] {
      return fi_trecv(side.ep(0), message, bytes, side.out().descriptor(), FI_ADDR_UNSPEC, kTag, 0,
                      side.context());
    });
    side.await_received(1);
  }
}

bool solve(Side& side, const std::vector<int>& orders) {
  bool right = true;
  auto* const message = reinterpret_cast<double*>(side.endpoints.out().data());
  const auto solved = [&](int order) {
    const gauss_problem problem{order, side.rank, 2, gauss_known_element, broadcast, &side, message};
    return gauss_rounded(&problem);
  };
  solved(kWarmUpOrder);
  for (const int order : orders) {
    const gauss_result result = solved(order);
    if (side.rank == 0) right = gauss_tell(&result) != 0 && right;
  }
  return right;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("One of the two sides of a Gauss elimination with two roundings.", "gauss_perf");
  Request request;
  std::string call, wait = "spin";
  std::vector<int> orders;
  int cpu = -1;
  unsigned limit = 120;
  app.add_option("--provider", request.provider, "libfabric provider")->required();
  app.add_option("--call", call, "HOST:PORT of the other side, as it printed it; without, this side answers");
  app.add_option("--cpu", cpu, "run on this processor only");
  app.add_option("--wait", wait, "while nothing completes: spin, or block")
      ->check(CLI::IsMember({"spin", "block"}));
  app.add_option("--limit", limit, "give up after so many seconds")->capture_default_str();
  app.add_option("orders", orders, "orders of the systems; both sides must be given the same")
      ->required()
      ->check(CLI::Range(1, 10000));
  app.footer("The side that calls prints a line of JSON for each order.");
  CLI11_PARSE(app, argc, argv);
  ::alarm(limit);
  if (cpu >= 0 && !pin(cpu)) return std::fprintf(stderr, "gauss_perf: may not run on processor %d\n", cpu), 2;
  try {
    request.waiting = wait == "block" ? Waiting::block : Waiting::spin;
    const int most = std::max(kWarmUpOrder, *std::max_element(orders.begin(), orders.end()));
    request.memory = sizeof(double) * static_cast<std::size_t>(gauss_message_numbers(most));
    ControlConnection line = connect_sides(call);
    Endpoints endpoints(request, line);
    Side side{endpoints, call.empty() ? 1 : 0};
    const bool right = solve(side, orders);
    line.exchange("done");  // before an endpoint closes, all of its messages have arrived
    if (!right) std::fprintf(stderr, "gauss_perf: a solution is wrong\n");
    return right ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gauss_perf: %s\n", error.what());
    return 1;
  }
}

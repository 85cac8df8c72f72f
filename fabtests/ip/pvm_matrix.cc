// Matrix product over PVM: `pvm_matrix ORDER TASKS`; prints the seconds, after every element has been compared.
//
// The master sends all of B and a block of rows of A to each task, which sends back its rows of the product. The elements are small
// integers, so the sums are exact and the order of the additions does not matter.
#include <pvm3.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <vector>

namespace {

constexpr int tag_work = 1, tag_result = 2;
using Matrix = std::vector<double>;

Matrix product(const Matrix& a, const Matrix& b, int rows, int order) {
  const auto width = static_cast<size_t>(order);
  Matrix c(static_cast<size_t>(rows) * width);
  for (size_t row = 0; row < static_cast<size_t>(rows); ++row)
    for (size_t inner = 0; inner < width; ++inner)
      for (size_t column = 0; column < width; ++column)
        c[row * width + column] += a[row * width + inner] * b[inner * width + column];
  return c;
}

int work(int parent) {
  int rows = 0, order = 0;
  pvm_recv(parent, tag_work);
  pvm_upkint(&rows, 1, 1);
  pvm_upkint(&order, 1, 1);
  Matrix a(static_cast<size_t>(rows * order)), b(static_cast<size_t>(order * order));
  pvm_upkdouble(a.data(), rows * order, 1);
  pvm_upkdouble(b.data(), order * order, 1);
  Matrix c = product(a, b, rows, order);
  int host = pvm_tidtohost(pvm_mytid());
  pvm_initsend(PvmDataRaw);
  pvm_pkint(&host, 1, 1);
  pvm_pkdouble(c.data(), rows * order, 1);
  pvm_send(parent, tag_result);
  pvm_exit();
  return 0;
}

int first_row(int task, int tasks, int order) { return order * task / tasks; }

}  // namespace

int main(int count, char** words) {
  pvm_setopt(PvmRoute, PvmRouteDirect);
  if (const int parent = pvm_parent(); parent > 0) return work(parent);
  if (count != 3) return std::fprintf(stderr, "usage: pvm_matrix ORDER TASKS\n"), 2;
  int order = std::atoi(words[1]);
  const int tasks = std::atoi(words[2]);
  std::vector<int> ids(static_cast<size_t>(tasks));
  char program[] = "pvm_matrix";
  if (pvm_spawn(program, nullptr, PvmTaskDefault, nullptr, tasks, ids.data()) != tasks)
    return std::fprintf(stderr, "fewer than %d tasks\n", tasks), 1;
  Matrix a(static_cast<size_t>(order * order)), b(a.size()), c(a.size());
  for (size_t at = 0; at < a.size(); ++at) {
    a[at] = static_cast<double>(at * 7 % 101);
    b[at] = static_cast<double>(at * 13 % 103);
  }
  const auto begun = std::chrono::steady_clock::now();
  for (int task = 0; task < tasks; ++task) {
    const int first = first_row(task, tasks, order);
    int rows = first_row(task + 1, tasks, order) - first;
    pvm_initsend(PvmDataRaw);
    pvm_pkint(&rows, 1, 1);
    pvm_pkint(&order, 1, 1);
    pvm_pkdouble(&a[static_cast<size_t>(first * order)], rows * order, 1);
    pvm_pkdouble(b.data(), order * order, 1);
    pvm_send(ids[static_cast<size_t>(task)], tag_work);
  }
  std::set<int> hosts;
  for (int task = 0; task < tasks; ++task) {
    const int first = first_row(task, tasks, order);
    int host = 0;
    pvm_recv(ids[static_cast<size_t>(task)], tag_result);
    pvm_upkint(&host, 1, 1);
    pvm_upkdouble(&c[static_cast<size_t>(first * order)], (first_row(task + 1, tasks, order) - first) * order,
                  1);
    hosts.insert(host);
  }
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begun;
  const bool right = c == product(a, b, order, order);
  std::printf("%.3f s on %zu hosts: %s\n", passed.count(), hosts.size(), right ? "right" : "wrong");
  pvm_exit();
  return right ? 0 : 1;
}

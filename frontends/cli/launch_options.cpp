#include "frontends/cli/launch_options.h"

namespace tilewright::cli {

void add_launch(CLI::App& app, LaunchArguments& a) {
  auto* c = app.add_subcommand("launch", "start a command as several processes that work together");
  c->add_option("--nproc", a.processes,
                "processes on this machine; LEAST:N goes on until fewer than LEAST are left")
      ->capture_default_str();
  c->add_option(
      "--nnodes", a.nodes,
      "machines, LEAST:MOST or N, on each of which `tilewright launch` is started with the "
      "same --store, --job and --nproc; default: this one");
  c->add_option(
      "--store", a.store,
      "etcd://HOST:PORT, where processes find one another: an etcd 3.4 or later; default: "
      "a store that this command serves on 127.0.0.1 while it runs");
  c->add_option("--job", a.job,
                "name of the job in the store, the same on all machines; default: a random one");
  c->add_option("--restarts", a.restarts,
                "how often each process that ends with an error is started again")
      ->capture_default_str()
      ->check(CLI::Range(0, 1000000));
  c->prefix_command();
  c->footer(
      "COMMAND is all that stands behind the options: a subcommand of tilewright with its "
      "arguments, "
      "or a program.\n"
      "Its processes are told who they are by their environment: TILEWRIGHT_ENGINE, "
      "TILEWRIGHT_STORE, "
      "TILEWRIGHT_JOB,\n"
      "TILEWRIGHT_LEAST and TILEWRIGHT_MOST (processes on all machines), TILEWRIGHT_LOCAL_RANK "
      "and\n"
      "TILEWRIGHT_LOCAL_RANKS. Their output is passed on line by line, behind [rank R]. Ctrl-C and "
      "SIGTERM reach each of\n"
      "them once. When one ends with an error, the others go on while at least LEAST can be left, "
      "and are stopped then.\n"
      "Exit status: 0 when all ended with 0; else that of the first that failed for good, 128 + N "
      "for signal N.\n"
      "Examples:\n  tilewright launch --nproc 4 train job.toml --threads 1\n"
      "  tilewright launch --nnodes 2:4 --store etcd://10.0.0.1:2379 --job digits train job.toml");
}

Result<LaunchArguments> with_command(const CLI::App& app, LaunchArguments arguments) {
  std::vector<std::string>& command = arguments.command;
  command = app.get_subcommand("launch")->remaining();
  if (command.empty()) return arguments;
  if (command[0][0] == '-') return invalid("launch has no option '" + command[0] + "'");
  if (command.size() > 1 && command[0] == "tilewright") {
    arguments.is_own = true;
    command.erase(command.begin());
  }
  const auto is_command = [&](const CLI::App* c) { return c->get_name() == command[0]; };
  if (!app.get_subcommands(is_command).empty()) arguments.is_own = true;
  return arguments;
}

}  // namespace tilewright::cli

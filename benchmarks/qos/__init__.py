"""Quality of service under overload: who keeps which utility, judged from outside of the runtime."""

"""What ties the approval gates to Pulumi's engine."""
